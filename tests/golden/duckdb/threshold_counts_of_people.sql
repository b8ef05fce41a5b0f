WITH evaluated AS (
  SELECT
    label,
    score
  FROM heldout_kept
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
