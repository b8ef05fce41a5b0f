WITH evaluated AS (
  SELECT
    CASE
      WHEN CAST(held."outcome" AS TEXT) = 'no'
      THEN 0
      WHEN CAST(held."outcome" AS TEXT) = 'yes'
      THEN 1
    END AS truth,
    held."calm" AS score_0,
    held."risk" AS score_1,
    GREATEST(held."calm", held."risk") AS top,
    CASE
      WHEN CAST(held."outcome" AS TEXT) = 'no'
      THEN held."calm"
      WHEN CAST(held."outcome" AS TEXT) = 'yes'
      THEN held."risk"
    END AS own,
    (
      held."risk"
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
  CAST(SUM(most) AS BIGINT) AS most,
  CAST(SUM(
    CAST(FLOOR((
      error
    ) * (
      (
        1048576 - most
      )
    ) / CAST('1048576.0' AS DOUBLE)) AS BIGINT)
  ) AS BIGINT) AS lacking,
  CAST(SUM(
    CAST(FLOOR(
      (
        (
          most - error
        )
      ) * (
        (
          1048576 - most
        )
      ) / CAST('1048576.0' AS DOUBLE)
    ) AS BIGINT)
  ) AS BIGINT) AS spare
FROM (
  SELECT
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
    ) AS error,
    CAST(FLOOR(
      GREATEST(CAST('0.0' AS DOUBLE), LEAST(CAST('1.0' AS DOUBLE), weight)) * CAST('1048576.0' AS DOUBLE) + 0.5
    ) AS BIGINT) AS most
  FROM evaluated
) AS errors
