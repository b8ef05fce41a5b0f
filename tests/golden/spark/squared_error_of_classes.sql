WITH evaluated AS (
  SELECT
    CASE
      WHEN CAST(held.`outcome` AS STRING) = 'no'
      THEN 0
      WHEN CAST(held.`outcome` AS STRING) = 'yes'
      THEN 1
    END AS truth,
    held.`calm` AS score_0,
    held.`risk` AS score_1,
    GREATEST(held.`calm`, held.`risk`) AS top,
    CASE
      WHEN CAST(held.`outcome` AS STRING) = 'no'
      THEN held.`calm`
      WHEN CAST(held.`outcome` AS STRING) = 'yes'
      THEN held.`risk`
    END AS own,
    (
      held.`risk`
    ) / CAST('1.0' AS DOUBLE) AS weight
  FROM heldout_rows AS held
)
SELECT
  CAST(SUM(error) AS BIGINT) AS total,
  CAST(SUM(
    CAST(FLOOR((
      error
    ) * (
      (
        most - error
      )
    ) / CAST('1048576.0' AS DOUBLE)) AS BIGINT)
  ) AS BIGINT) AS product,
  CAST(SUM(most) AS BIGINT) AS most
FROM (
  SELECT
    GREATEST(
      0,
      LEAST(
        1048576,
        CAST(FLOOR(
          (
            (
              score_0 * score_0 + score_1 * score_1 - 2 * own + 1
            ) / 2
          ) * CAST('1048576.0' AS DOUBLE) + 0.5
        ) AS BIGINT)
      )
    ) AS error,
    1048576 AS most
  FROM evaluated
) AS errors
