WITH evaluated AS (
  SELECT
    held."readmitted" AS label,
    held."risk" AS score
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
            ABS((
              score - CAST('-1.0' AS DOUBLE)
            ) / CAST('4.0' AS DOUBLE) - label)
          ) * CAST('1048576.0' AS DOUBLE) + 0.5
        ) AS BIGINT)
      )
    ) AS error,
    1048576 AS most
  FROM evaluated
) AS errors
