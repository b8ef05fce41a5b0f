WITH evaluated AS (
  SELECT
    held."readmitted" AS label,
    held."risk" AS score
  FROM heldout_rows AS held
)
SELECT
  CAST(COUNT(*) - SUM(label) AS BIGINT) AS negatives,
  CAST(SUM(label) AS BIGINT) AS positives
FROM evaluated
