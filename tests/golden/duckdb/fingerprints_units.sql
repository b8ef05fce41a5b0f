SELECT
  COUNT(*) AS n,
  CAST(SUM(
    (
      (
        (
          (
            CAST(held."visit" AS BIGINT)
          ) % 2147483647 + 2147483647
        ) * 314159265 % 2147483629
      ) * 358979323 % 2147483587
    ) * 846264338 % 2147483647
  ) AS TEXT) || '/' || CAST(SUM(
    (
      (
        (
          (
            CAST(held."visit" AS BIGINT)
          ) % 2147483579 + 2147483579
        ) * 271828182 % 2147483563
      ) * 845904523 % 2147483549
    ) * 536028747 % 2147483579
  ) AS TEXT) AS fingerprint_row_key,
  CAST(SUM(
    (
      (
        (
          (
            COALESCE(
              CASE
                WHEN REGEXP_MATCHES(
                  CASE
                    WHEN REGEXP_MATCHES(CAST(held."patient" AS TEXT), '^-?[0-9]+[.][0-9]+$')
                    THEN RTRIM(RTRIM(CAST(held."patient" AS TEXT), '0'), '.')
                    ELSE CAST(held."patient" AS TEXT)
                  END,
                  '^-?[0-9]{1,19}$'
                )
                THEN TRY_CAST(CASE
                  WHEN REGEXP_MATCHES(CAST(held."patient" AS TEXT), '^-?[0-9]+[.][0-9]+$')
                  THEN RTRIM(RTRIM(CAST(held."patient" AS TEXT), '0'), '.')
                  ELSE CAST(held."patient" AS TEXT)
                END AS BIGINT)
              END,
              CAST('0x' || SUBSTRING(
                MD5(
                  CASE
                    WHEN REGEXP_MATCHES(CAST(held."patient" AS TEXT), '^-?[0-9]+[.][0-9]+$')
                    THEN RTRIM(RTRIM(CAST(held."patient" AS TEXT), '0'), '.')
                    ELSE CAST(held."patient" AS TEXT)
                  END
                ),
                1,
                15
              ) AS BIGINT)
            )
          ) % 2147483647 + 2147483647
        ) * 314159265 % 2147483629
      ) * 358979323 % 2147483587
    ) * 846264338 % 2147483647
  ) AS TEXT) || '/' || CAST(SUM(
    (
      (
        (
          (
            COALESCE(
              CASE
                WHEN REGEXP_MATCHES(
                  CASE
                    WHEN REGEXP_MATCHES(CAST(held."patient" AS TEXT), '^-?[0-9]+[.][0-9]+$')
                    THEN RTRIM(RTRIM(CAST(held."patient" AS TEXT), '0'), '.')
                    ELSE CAST(held."patient" AS TEXT)
                  END,
                  '^-?[0-9]{1,19}$'
                )
                THEN TRY_CAST(CASE
                  WHEN REGEXP_MATCHES(CAST(held."patient" AS TEXT), '^-?[0-9]+[.][0-9]+$')
                  THEN RTRIM(RTRIM(CAST(held."patient" AS TEXT), '0'), '.')
                  ELSE CAST(held."patient" AS TEXT)
                END AS BIGINT)
              END,
              CAST('0x' || SUBSTRING(
                MD5(
                  CASE
                    WHEN REGEXP_MATCHES(CAST(held."patient" AS TEXT), '^-?[0-9]+[.][0-9]+$')
                    THEN RTRIM(RTRIM(CAST(held."patient" AS TEXT), '0'), '.')
                    ELSE CAST(held."patient" AS TEXT)
                  END
                ),
                1,
                15
              ) AS BIGINT)
            )
          ) % 2147483579 + 2147483579
        ) * 271828182 % 2147483563
      ) * 845904523 % 2147483549
    ) * 536028747 % 2147483579
  ) AS TEXT) AS fingerprint_unit,
  CAST(SUM(
    (
      (
        (
          (
            COALESCE(
              CASE
                WHEN REGEXP_MATCHES(CAST(held."patient" AS TEXT), '^-?[0-9]{1,19}([.]0+)?$')
                THEN TRY_CAST(SPLIT_PART(CAST(held."patient" AS TEXT), '.', 1) AS BIGINT)
              END,
              CAST('0x' || SUBSTRING(MD5(CAST(held."patient" AS TEXT)), 1, 15) AS BIGINT)
            )
          ) % 2147483647 + 2147483647
        ) * 314159265 % 2147483629
      ) * 358979323 % 2147483587
    ) * 846264338 % 2147483647
  ) AS TEXT) || '/' || CAST(SUM(
    (
      (
        (
          (
            COALESCE(
              CASE
                WHEN REGEXP_MATCHES(CAST(held."patient" AS TEXT), '^-?[0-9]{1,19}([.]0+)?$')
                THEN TRY_CAST(SPLIT_PART(CAST(held."patient" AS TEXT), '.', 1) AS BIGINT)
              END,
              CAST('0x' || SUBSTRING(MD5(CAST(held."patient" AS TEXT)), 1, 15) AS BIGINT)
            )
          ) % 2147483579 + 2147483579
        ) * 271828182 % 2147483563
      ) * 845904523 % 2147483549
    ) * 536028747 % 2147483579
  ) AS TEXT) AS fingerprint_unit_before,
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
