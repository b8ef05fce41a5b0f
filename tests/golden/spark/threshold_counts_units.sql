WITH evaluated AS (
  SELECT
    label,
    score
  FROM (
    SELECT
      label,
      score,
      ROW_NUMBER() OVER (
        PARTITION BY unit_key
        ORDER BY MD5(unit_key || '/' || row_key) NULLS LAST, row_key NULLS LAST
      ) AS place
    FROM (
      SELECT
        held.`readmitted` AS label,
        held.`risk` AS score,
        CAST(held.`patient` AS STRING) AS unit_key,
        CAST(held.`visit` AS STRING) AS row_key
      FROM heldout_rows AS held
    ) AS named
  ) AS placed
  WHERE
    place <= 2
)
SELECT
  label,
  CAST(score >= CAST('0.25' AS DOUBLE) AS INT) + CAST(score >= CAST('0.5' AS DOUBLE) AS INT) AS interval_number,
  COUNT(*) AS n
FROM evaluated
GROUP BY
  1,
  2
