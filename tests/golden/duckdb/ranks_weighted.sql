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
    ) / CAST('1.0' AS DOUBLE) AS weight,
    CASE WHEN CAST(held."patient" AS TEXT) = 'p1' THEN 0 ELSE 1 END AS member
  FROM heldout_rows AS held
)
SELECT
  member,
  CAST(score_0 > own OR (
    score_0 >= own AND truth > 0
  ) AS INT) + CAST(score_1 > own OR (
    score_1 >= own AND truth > 1
  ) AS INT) AS rank,
  CAST(SUM(
    CAST(FLOOR(
      GREATEST(CAST('0.0' AS DOUBLE), LEAST(CAST('1.0' AS DOUBLE), weight)) * CAST('1048576.0' AS DOUBLE) + 0.5
    ) AS BIGINT)
  ) AS BIGINT) AS n,
  CAST(SUM(
    CAST(FLOOR(
      (
        CAST(FLOOR(
          GREATEST(CAST('0.0' AS DOUBLE), LEAST(CAST('1.0' AS DOUBLE), weight)) * CAST('1048576.0' AS DOUBLE) + 0.5
        ) AS BIGINT)
      ) * (
        1048576 - CAST(FLOOR(
          GREATEST(CAST('0.0' AS DOUBLE), LEAST(CAST('1.0' AS DOUBLE), weight)) * CAST('1048576.0' AS DOUBLE) + 0.5
        ) AS BIGINT)
      ) / CAST('1048576.0' AS DOUBLE)
    ) AS BIGINT)
  ) AS BIGINT) AS lacking
FROM evaluated
GROUP BY
  1,
  2
