WITH evaluated AS (
  SELECT
    CASE
      WHEN CAST(held."outcome" AS TEXT) = 'no'
      THEN 0
      WHEN CAST(held."outcome" AS TEXT) = 'yes'
      THEN 1
    END AS truth,
    held."calm" AS score_0,
    held."risk" AS score_1,
    GREATEST(held."calm", held."risk") AS top,
    CASE
      WHEN CAST(held."outcome" AS TEXT) = 'no'
      THEN held."calm"
      WHEN CAST(held."outcome" AS TEXT) = 'yes'
      THEN held."risk"
    END AS own,
    (
      held."risk"
    ) / CAST('1.0' AS DOUBLE) AS weight
  FROM heldout_rows AS held
)
SELECT
  truth,
  CASE WHEN score_0 >= top THEN 0 WHEN score_1 >= top THEN 1 END AS called,
  COUNT(*) AS n
FROM evaluated
GROUP BY
  1,
  2
