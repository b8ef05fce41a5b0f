WITH evaluated AS (
  SELECT
    held.`readmitted` AS label,
    held.`risk` AS score
  FROM heldout_rows AS held
)
SELECT
  CAST(SUM(
    GREATEST(
      0,
      LEAST(
        1048576,
        CAST(FLOOR(
          (
            (
              (
                score - CAST('0.0' AS DOUBLE)
              ) / CAST('1.0' AS DOUBLE) - label
            ) * (
              (
                score - CAST('0.0' AS DOUBLE)
              ) / CAST('1.0' AS DOUBLE) - label
            )
          ) * CAST('1048576.0' AS DOUBLE) + 0.5
        ) AS BIGINT)
      )
    )
  ) AS BIGINT) AS total,
  COUNT(*) AS n
FROM evaluated
