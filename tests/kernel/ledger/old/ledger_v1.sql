BEGIN TRANSACTION;
CREATE TABLE heldout_accounts (
	id TEXT NOT NULL, 
	budget TEXT NOT NULL, 
	spent TEXT NOT NULL, 
	sequence BIGINT NOT NULL, 
	head TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "heldout_accounts" VALUES('3d3986f54d5a09a60a34c145aca491ed','{"delta":"0","epsilon":"2"}','{"delta":"0","epsilon":"1"}',4,'1a10002bde0f6e1ed4bb044cad0c82009cd42879b282af8024fb2843489c5d04');
INSERT INTO "heldout_accounts" VALUES('b36cfbcbbfcd995689e6e7e3cbd68dd6','{"delta":"1/1000000","rho":"1/2"}','{"delta":"0","rho":"1/18"}',6,'a9b5a1049522b31f24dcd7ccc9c76ab5c6d9cad947689f49e40da89aadde8f64');
CREATE TABLE heldout_entries (
	sequence BIGINT NOT NULL, 
	account TEXT NOT NULL, 
	previous TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (sequence), 
	UNIQUE (hash)
);
INSERT INTO "heldout_entries" VALUES(1,'3d3986f54d5a09a60a34c145aca491ed','83f9829169f7bfb724129879470c7105a198c0e5f6b0c50a8f03259240bc9e7b','a5f8e5dc1a645aea0fc7b6e0cef72e424710d12ea4e57aa210b5c6b113e73db9','{"account":"3d3986f54d5a09a60a34c145aca491ed","budget":{"delta":"0","epsilon":"2"},"kind":"opening","ledger":"a7a754d1ab5e16fef9da0d3000ce1c97","name":"first.parquet","protection":{"neighbours":"replace-one","row_count_is_public":true,"rows_per_unit":1,"unit":false,"unit_name":null},"sequence":1,"spent":{"delta":"0","epsilon":"0"},"ties":2,"time":"2026-11-16T13:33:07.564722+00:00"}');
INSERT INTO "heldout_entries" VALUES(2,'3d3986f54d5a09a60a34c145aca491ed','a5f8e5dc1a645aea0fc7b6e0cef72e424710d12ea4e57aa210b5c6b113e73db9','bacaa39f4bbdea51b3384f97b0b39b95e5f86f94e2605bfa8e52dde250a0abb8','{"account":"3d3986f54d5a09a60a34c145aca491ed","budget":{"delta":"0","epsilon":"2"},"charge":{"delta":"0","epsilon":"1/3"},"event":{"kind":"exponential","parameters":{"epsilon":"1/3"},"version":1},"kind":"booking","ledger":"a7a754d1ab5e16fef9da0d3000ce1c97","loss":{"delta":"0","epsilon":"1/3"},"request":{"release":"auc"},"sequence":2,"spent":{"delta":"0","epsilon":"1/3"},"time":"2026-11-16T13:33:07.591977+00:00"}');
INSERT INTO "heldout_entries" VALUES(3,'3d3986f54d5a09a60a34c145aca491ed','bacaa39f4bbdea51b3384f97b0b39b95e5f86f94e2605bfa8e52dde250a0abb8','3a4140cb055db32612f6091a48b035f1167f558fd8f86bf38597f27dd77f261a','{"account":"3d3986f54d5a09a60a34c145aca491ed","budget":{"delta":"0","epsilon":"2"},"charge":{"delta":"0","epsilon":"2/3"},"event":{"kind":"composed","parameters":{"parts":[{"kind":"exponential","parameters":{"epsilon":"1/3"},"version":1},{"kind":"exponential","parameters":{"epsilon":"1/3"},"version":1}]},"version":1},"kind":"booking","ledger":"a7a754d1ab5e16fef9da0d3000ce1c97","loss":{"delta":"0","epsilon":"2/3"},"request":{"release":"curves"},"sequence":3,"spent":{"delta":"0","epsilon":"1"},"time":"2026-11-16T13:33:07.611097+00:00"}');
INSERT INTO "heldout_entries" VALUES(4,'3d3986f54d5a09a60a34c145aca491ed','3a4140cb055db32612f6091a48b035f1167f558fd8f86bf38597f27dd77f261a','1a10002bde0f6e1ed4bb044cad0c82009cd42879b282af8024fb2843489c5d04','{"account":"3d3986f54d5a09a60a34c145aca491ed","budget":{"delta":"0","epsilon":"2"},"kind":"tie","ledger":"a7a754d1ab5e16fef9da0d3000ce1c97","name":"renamed.parquet","sequence":4,"spent":{"delta":"0","epsilon":"1"},"ties":1,"time":"2026-11-16T13:33:07.636464+00:00"}');
INSERT INTO "heldout_entries" VALUES(5,'b36cfbcbbfcd995689e6e7e3cbd68dd6','1a10002bde0f6e1ed4bb044cad0c82009cd42879b282af8024fb2843489c5d04','6ee96a95bd34dbedbed8115ca1d91480dfb053db2cd464084b888a74e0950f0b','{"account":"b36cfbcbbfcd995689e6e7e3cbd68dd6","budget":{"delta":"1/1000000","rho":"1/2"},"kind":"opening","ledger":"a7a754d1ab5e16fef9da0d3000ce1c97","name":"second.csv","protection":{"neighbours":"add-remove","row_count_is_public":false,"rows_per_unit":2,"unit":true,"unit_name":"patient_id"},"sequence":5,"spent":{"delta":"0","rho":"0"},"ties":1,"time":"2026-11-16T13:33:07.651494+00:00"}');
INSERT INTO "heldout_entries" VALUES(6,'b36cfbcbbfcd995689e6e7e3cbd68dd6','6ee96a95bd34dbedbed8115ca1d91480dfb053db2cd464084b888a74e0950f0b','a9b5a1049522b31f24dcd7ccc9c76ab5c6d9cad947689f49e40da89aadde8f64','{"account":"b36cfbcbbfcd995689e6e7e3cbd68dd6","budget":{"delta":"1/1000000","rho":"1/2"},"charge":{"delta":"0","rho":"1/18"},"event":{"kind":"exponential","parameters":{"epsilon":"1/3"},"version":1},"kind":"booking","ledger":"a7a754d1ab5e16fef9da0d3000ce1c97","loss":{"delta":"0","epsilon":"1/3"},"request":{"release":"confusion","threshold":0.5},"sequence":6,"spent":{"delta":"0","rho":"1/18"},"time":"2026-11-16T13:33:07.674415+00:00"}');
CREATE TABLE heldout_ledger (
	"row" INTEGER NOT NULL, 
	schema_version INTEGER NOT NULL, 
	ledger TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	sequence BIGINT NOT NULL, 
	head TEXT NOT NULL, 
	PRIMARY KEY ("row")
);
INSERT INTO "heldout_ledger" VALUES(1,1,'a7a754d1ab5e16fef9da0d3000ce1c97','0c072a01d1c1f81f32e1bb2b7c130637968421103d68d01b5b63a536ebb180fc',6,'a9b5a1049522b31f24dcd7ccc9c76ab5c6d9cad947689f49e40da89aadde8f64');
CREATE TABLE heldout_ties (
	mac TEXT NOT NULL, 
	account TEXT NOT NULL, 
	seal TEXT NOT NULL, 
	PRIMARY KEY (mac)
);
INSERT INTO "heldout_ties" VALUES('c733c2b4b8d221e1ec287a8cdb5847a5ab46b75a9d7f93292d569df2a079ad1c','3d3986f54d5a09a60a34c145aca491ed','0e8f9604cea5388d7d03cdf111b5aeea75f42c1ec9460818f9decf545a6051f1');
INSERT INTO "heldout_ties" VALUES('9dd654b3ab65b7eb080bc4e79ebdb7eb364d38f57b8f22e85aec6e94134d2f38','3d3986f54d5a09a60a34c145aca491ed','546cf7469519afa7126324e98fbab2efa1e19992805056e79c9337dfb633d787');
INSERT INTO "heldout_ties" VALUES('ffe45c1795ccc19b7b148d014f7192f7aa042eb44c1fb41221fdbeded3e33faf','3d3986f54d5a09a60a34c145aca491ed','54a78da192faf44e0297f62b4b8455e3ca9365e1957d6f78cb4c3d1bb20fbce0');
INSERT INTO "heldout_ties" VALUES('f1b31702b16d5cb58cf3ae08c3fa6dac02d62a63b6631b832c12fafa3317c57b','b36cfbcbbfcd995689e6e7e3cbd68dd6','9440292348e4c44b09a098c77cf21bbdca9cf636d2bf6823b759229efca0dbc2');
CREATE INDEX ix_heldout_ties_account ON heldout_ties (account);
CREATE INDEX ix_heldout_entries_account ON heldout_entries (account);
COMMIT;
