WITH evaluated AS (
  SELECT
    CASE
      WHEN (
        CAST(held."outcome" AS TEXT) COLLATE "C"
      ) = CAST('no' AS TEXT)
      THEN 0
      WHEN (
        CAST(held."outcome" AS TEXT) COLLATE "C"
      ) = CAST('yes' AS TEXT)
      THEN 1
    END AS truth,
    held."calm" AS score_0,
    held."risk" AS score_1,
    GREATEST(held."calm", held."risk") AS top,
    CASE
      WHEN (
        CAST(held."outcome" AS TEXT) COLLATE "C"
      ) = CAST('no' AS TEXT)
      THEN held."calm"
      WHEN (
        CAST(held."outcome" AS TEXT) COLLATE "C"
      ) = CAST('yes' AS TEXT)
      THEN held."risk"
    END AS own,
    (
      held."risk"
    ) / CAST('1.0' AS DOUBLE PRECISION) AS weight
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
