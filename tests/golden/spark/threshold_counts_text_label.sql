WITH evaluated AS (
  SELECT
    CASE WHEN CAST(held.`outcome` AS STRING) = 'yes' THEN 1 ELSE 0 END AS label,
    held.`risk` AS score
  FROM heldout_rows AS held
)
SELECT
  label,
  (
    CAST(score >= CAST('0.25' AS DOUBLE) AS INT) + CAST(score >= CAST('0.5' AS DOUBLE) AS INT)
  ) AS interval_number,
  COUNT(*) AS n
FROM evaluated
GROUP BY
  1,
  2
