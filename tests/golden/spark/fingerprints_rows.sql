SELECT
  COUNT(*) AS n,
  CAST(SUM(
    (
      (
        (
          (
            CAST(held.`visit` AS BIGINT)
          ) % 2147483647 + 2147483647
        ) * 314159265 % 2147483629
      ) * 358979323 % 2147483587
    ) * 846264338 % 2147483647
  ) AS STRING) || '/' || CAST(SUM(
    (
      (
        (
          (
            CAST(held.`visit` AS BIGINT)
          ) % 2147483579 + 2147483579
        ) * 271828182 % 2147483563
      ) * 845904523 % 2147483549
    ) * 536028747 % 2147483579
  ) AS STRING) AS fingerprint_row_key
FROM heldout_rows AS held
