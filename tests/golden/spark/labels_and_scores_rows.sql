WITH evaluated AS (
  SELECT
    held.`readmitted` AS label,
    held.`risk` AS score
  FROM heldout_rows AS held
)
SELECT
  label,
  score
FROM evaluated
