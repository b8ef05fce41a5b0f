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
  CAST(SUM(
    GREATEST(
      0,
      LEAST(
        CAST(FLOOR(
          GREATEST(CAST('0.0' AS DOUBLE), LEAST(CAST('1.0' AS DOUBLE), weight)) * CAST('1048576.0' AS DOUBLE) + 0.5
        ) AS BIGINT),
        CAST(FLOOR(
          (
            -LN(GREATEST(own, CAST('0.01' AS DOUBLE))) / CAST('4.605170185988091' AS DOUBLE)
          ) * CAST(FLOOR(
            GREATEST(CAST('0.0' AS DOUBLE), LEAST(CAST('1.0' AS DOUBLE), weight)) * CAST('1048576.0' AS DOUBLE) + 0.5
          ) AS BIGINT) + 0.5
        ) AS BIGINT)
      )
    )
  ) AS BIGINT) AS total,
  CAST(SUM(
    CAST(FLOOR(
      GREATEST(CAST('0.0' AS DOUBLE), LEAST(CAST('1.0' AS DOUBLE), weight)) * CAST('1048576.0' AS DOUBLE) + 0.5
    ) AS BIGINT)
  ) AS BIGINT) AS n
FROM evaluated
