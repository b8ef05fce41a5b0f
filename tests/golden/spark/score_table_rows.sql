WITH evaluated AS (
  SELECT
    held.`readmitted` AS label,
    held.`risk` AS score
  FROM heldout_rows AS held
)
SELECT
  label,
  CAST(RINT(score * CAST('1024.0' AS DOUBLE)) AS INT) AS point,
  COUNT(*) AS n
FROM evaluated
GROUP BY
  1,
  2
