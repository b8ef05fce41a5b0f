SELECT
  COUNT(*) AS n,
  CAST(BIT_XOR(
    HASH(
      (
        HASH(CAST(held."visit" AS DOUBLE)) >> 16
      ) + (
        (
          CASE
            WHEN (
              CASE LOWER(CAST(held."patient" AS TEXT))
                WHEN 'true'
                THEN 1
                WHEN 'false'
                THEN 0
                ELSE TRY_CAST(CAST(held."patient" AS TEXT) AS DOUBLE)
              END
            ) IS NULL
            THEN HASH(CAST(held."patient" AS TEXT))
            ELSE HASH(
              NULLIF(
                CASE LOWER(CAST(held."patient" AS TEXT))
                  WHEN 'true'
                  THEN 1
                  WHEN 'false'
                  THEN 0
                  ELSE TRY_CAST(CAST(held."patient" AS TEXT) AS DOUBLE)
                END,
                CAST('nan' AS DOUBLE)
              )
            )
          END
        ) >> 16
      ) + (
        HASH(CAST(held."readmitted" AS DOUBLE)) >> 16
      ) + (
        (
          CASE
            WHEN (
              CASE LOWER(CAST(held."outcome" AS TEXT))
                WHEN 'true'
                THEN 1
                WHEN 'false'
                THEN 0
                ELSE TRY_CAST(CAST(held."outcome" AS TEXT) AS DOUBLE)
              END
            ) IS NULL
            THEN HASH(CAST(held."outcome" AS TEXT))
            ELSE HASH(
              NULLIF(
                CASE LOWER(CAST(held."outcome" AS TEXT))
                  WHEN 'true'
                  THEN 1
                  WHEN 'false'
                  THEN 0
                  ELSE TRY_CAST(CAST(held."outcome" AS TEXT) AS DOUBLE)
                END,
                CAST('nan' AS DOUBLE)
              )
            )
          END
        ) >> 16
      ) + (
        HASH(NULLIF(CAST(held."risk" AS DOUBLE), CAST('nan' AS DOUBLE))) >> 16
      )
    )
  ) AS TEXT) || '/' || CAST(SUM(
    HASH(
      (
        HASH(CAST(held."visit" AS DOUBLE)) >> 16
      ) + (
        (
          CASE
            WHEN (
              CASE LOWER(CAST(held."patient" AS TEXT))
                WHEN 'true'
                THEN 1
                WHEN 'false'
                THEN 0
                ELSE TRY_CAST(CAST(held."patient" AS TEXT) AS DOUBLE)
              END
            ) IS NULL
            THEN HASH(CAST(held."patient" AS TEXT))
            ELSE HASH(
              NULLIF(
                CASE LOWER(CAST(held."patient" AS TEXT))
                  WHEN 'true'
                  THEN 1
                  WHEN 'false'
                  THEN 0
                  ELSE TRY_CAST(CAST(held."patient" AS TEXT) AS DOUBLE)
                END,
                CAST('nan' AS DOUBLE)
              )
            )
          END
        ) >> 16
      ) + (
        HASH(CAST(held."readmitted" AS DOUBLE)) >> 16
      ) + (
        (
          CASE
            WHEN (
              CASE LOWER(CAST(held."outcome" AS TEXT))
                WHEN 'true'
                THEN 1
                WHEN 'false'
                THEN 0
                ELSE TRY_CAST(CAST(held."outcome" AS TEXT) AS DOUBLE)
              END
            ) IS NULL
            THEN HASH(CAST(held."outcome" AS TEXT))
            ELSE HASH(
              NULLIF(
                CASE LOWER(CAST(held."outcome" AS TEXT))
                  WHEN 'true'
                  THEN 1
                  WHEN 'false'
                  THEN 0
                  ELSE TRY_CAST(CAST(held."outcome" AS TEXT) AS DOUBLE)
                END,
                CAST('nan' AS DOUBLE)
              )
            )
          END
        ) >> 16
      ) + (
        HASH(NULLIF(CAST(held."risk" AS DOUBLE), CAST('nan' AS DOUBLE))) >> 16
      )
    ) >> 24
  ) AS TEXT) AS fingerprint_all
FROM heldout_rows AS held
