WITH evaluated AS (
  SELECT
    held."readmitted" AS label,
    held."risk" AS score
  FROM heldout_rows AS held
  POSITIONAL JOIN heldout_counted AS found
  WHERE
    found.counts
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
