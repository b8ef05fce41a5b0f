SELECT
  COUNT(*) AS n,
  COUNT(*) - COUNT(held."readmitted") AS missing_label,
  COUNT(*) - COUNT(*) FILTER(WHERE
    held."readmitted" = 1 OR held."readmitted" = 0) AS unknown_label,
  COUNT(*) - COUNT(*) FILTER(WHERE
    NOT (
      held."risk"
    ) IS NULL
    AND NOT (
      held."risk" = CAST('NaN' AS DOUBLE PRECISION)
    )) AS missing_score,
  COUNT(*) - COUNT(*) FILTER(WHERE
    (
      held."risk"
    ) >= CAST('-1.7976931348623157e+308' AS DOUBLE PRECISION)
    AND (
      held."risk"
    ) <= CAST('1.7976931348623157e+308' AS DOUBLE PRECISION)) AS infinite_score,
  COUNT(*) - COUNT(*) FILTER(WHERE
    held."risk" >= CAST('0.0' AS DOUBLE PRECISION)
    AND held."risk" <= CAST('1.0' AS DOUBLE PRECISION)) AS outside,
  COUNT(*) - COUNT(held."visit") AS missing_key,
  COUNT(*) - COUNT(DISTINCT held."visit") AS duplicate
FROM heldout_rows AS held
