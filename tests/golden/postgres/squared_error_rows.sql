WITH evaluated AS (
  SELECT
    held."readmitted" AS label,
    held."risk" AS score
  FROM heldout_rows AS held
)
SELECT
  CAST(SUM(error) AS BIGINT) AS total,
  CAST(SUM(
    CAST(FLOOR(
      (
        CASE
          WHEN ABS((
            error
          ) * (
            (
              most - error
            )
          )) < CAST('1.048576e-294' AS DOUBLE PRECISION)
          THEN CAST('0' AS DOUBLE PRECISION)
          ELSE (
            error
          ) * (
            (
              most - error
            )
          ) / CAST('1048576.0' AS DOUBLE PRECISION)
        END
      )
    ) AS BIGINT)
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
              CASE
                WHEN ABS(
                  (
                    (
                      score - CAST('0.0' AS DOUBLE PRECISION)
                    ) / CAST('1.0' AS DOUBLE PRECISION) - label
                  )
                ) < CAST('1e-150' AS DOUBLE PRECISION)
                THEN CAST('0' AS DOUBLE PRECISION)
                ELSE (
                  (
                    score - CAST('0.0' AS DOUBLE PRECISION)
                  ) / CAST('1.0' AS DOUBLE PRECISION) - label
                ) * (
                  (
                    score - CAST('0.0' AS DOUBLE PRECISION)
                  ) / CAST('1.0' AS DOUBLE PRECISION) - label
                )
              END
            )
          ) * CAST('1048576.0' AS DOUBLE PRECISION) + 0.5
        ) AS BIGINT)
      )
    ) AS error,
    1048576 AS most
  FROM evaluated
) AS errors
