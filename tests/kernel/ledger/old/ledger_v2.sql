BEGIN TRANSACTION;
CREATE TABLE heldout_accounts (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	name TEXT, 
	parent TEXT, 
	state TEXT NOT NULL, 
	sequence BIGINT NOT NULL, 
	head TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "heldout_accounts" VALUES('7260b0ac1d81af03d8b100a6180358db','rows','first.csv',NULL,'{"budget":{"delta":"0","epsilon":"1"},"rows":7,"spent":{"delta":"0","epsilon":"1/3"}}',2,'13051782fa904e0c7c55b15215b36d6e30bf1169c70715d1eade6dfa322ec597');
INSERT INTO "heldout_accounts" VALUES('ea60bc9396e64ac00b79def1e6e0a322','data','patients',NULL,'{"budget":{"delta":"0","epsilon":"2"},"spent":{"delta":"0","epsilon":"1/3"}}',9,'bf1e9d82c4d7ce894692cd2cfa0344019001c6b1e1ed204d6e69c3fe540822d2');
INSERT INTO "heldout_accounts" VALUES('a8ff78444f95b8c8fcf6a9f4b2cbadd2','data','trial','ea60bc9396e64ac00b79def1e6e0a322','{"budget":{"delta":"0","epsilon":"2"},"spent":{"delta":"0","epsilon":"1/3"}}',9,'bf1e9d82c4d7ce894692cd2cfa0344019001c6b1e1ed204d6e69c3fe540822d2');
INSERT INTO "heldout_accounts" VALUES('c1ee6c96d1bcf7a3e31cb8edbb0369a1','analyst','ana','a8ff78444f95b8c8fcf6a9f4b2cbadd2','{"budget":{"delta":"0","epsilon":"3/2"},"spent":{"delta":"0","epsilon":"1/3"}}',7,'4ab3878053b4dfaea2a4971d3c7e97ca96dff38511d7e6e97d35212c9031a4eb');
INSERT INTO "heldout_accounts" VALUES('109abe76df9cee88699d9e83b20ee3e4','analyst','ben','a8ff78444f95b8c8fcf6a9f4b2cbadd2','{"budget":{"delta":"0","epsilon":"1"},"closed":true,"spent":{"delta":"0","epsilon":"0"}}',9,'bf1e9d82c4d7ce894692cd2cfa0344019001c6b1e1ed204d6e69c3fe540822d2');
INSERT INTO "heldout_accounts" VALUES('b3c11ea78e3c5fbcd34ca6168cf3f28d','data','old',NULL,'{"budget":{"delta":"1/1000000","rho":"1/2"},"closed":true,"spent":{"delta":"0","rho":"0"}}',11,'b85abd12bbdd36c7af7b2348208014dcad6ad71513a4d0e3ababb3396e10f541');
CREATE TABLE heldout_entries (
	sequence BIGINT NOT NULL, 
	account TEXT NOT NULL, 
	previous TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (sequence), 
	UNIQUE (hash)
);
INSERT INTO "heldout_entries" VALUES(1,'7260b0ac1d81af03d8b100a6180358db','5003a8824fc888ed91e2ea77eb1caaaaff71a6d2f2b4167b4d451c46faaeacbb','ed5f7d8cec5145b90332d0adcdcafea1986d1628b1ac45d2d2ace1cfc9966a9d','{"account":"7260b0ac1d81af03d8b100a6180358db","budget":{"delta":"0","epsilon":"1"},"kind":"opening","ledger":"2174f7c6572a080e0bd275ead884d13e","name":"first.csv","protection":{"neighbours":"replace-one","row_count_is_public":true,"rows_per_unit":1,"unit":false,"unit_name":null},"rows":7,"sequence":1,"spent":{"delta":"0","epsilon":"0"},"ties":2,"time":"2026-11-18T04:21:55.750880+00:00"}');
INSERT INTO "heldout_entries" VALUES(2,'7260b0ac1d81af03d8b100a6180358db','ed5f7d8cec5145b90332d0adcdcafea1986d1628b1ac45d2d2ace1cfc9966a9d','13051782fa904e0c7c55b15215b36d6e30bf1169c70715d1eade6dfa322ec597','{"account":"7260b0ac1d81af03d8b100a6180358db","budget":{"delta":"0","epsilon":"1"},"charge":{"delta":"0","epsilon":"1/3"},"event":{"kind":"exponential","parameters":{"epsilon":"1/3"},"version":1},"kind":"booking","ledger":"2174f7c6572a080e0bd275ead884d13e","loss":{"delta":"0","epsilon":"1/3"},"request":{"release":"auc"},"rows":7,"sequence":2,"spent":{"delta":"0","epsilon":"1/3"},"time":"2026-11-18T04:21:55.760723+00:00"}');
INSERT INTO "heldout_entries" VALUES(3,'ea60bc9396e64ac00b79def1e6e0a322','13051782fa904e0c7c55b15215b36d6e30bf1169c70715d1eade6dfa322ec597','b2af76c18a97600f2bdde79143d82b1444a7b26bb18db3582491bbe7c39dcbc9','{"account":"ea60bc9396e64ac00b79def1e6e0a322","budget":{"delta":"0","epsilon":"2"},"kind":"registration","ledger":"2174f7c6572a080e0bd275ead884d13e","name":"patients","protection":{"neighbours":"replace-one","row_count_is_public":false,"rows_per_unit":1,"unit":true,"unit_name":"patient"},"sequence":3,"spent":{"delta":"0","epsilon":"0"},"time":"2026-11-18T04:21:55.782283+00:00","who":"carol","why":"a study"}');
INSERT INTO "heldout_entries" VALUES(4,'a8ff78444f95b8c8fcf6a9f4b2cbadd2','b2af76c18a97600f2bdde79143d82b1444a7b26bb18db3582491bbe7c39dcbc9','3c308d3e05c9d485e3576b8c568f8484ec2b7aa61a3b0e968a62d103d998a3e5','{"above":[{"account":"ea60bc9396e64ac00b79def1e6e0a322","budget":{"delta":"0","epsilon":"2"},"spent":{"delta":"0","epsilon":"0"}}],"account":"a8ff78444f95b8c8fcf6a9f4b2cbadd2","budget":{"delta":"0","epsilon":"2"},"kind":"registration","ledger":"2174f7c6572a080e0bd275ead884d13e","name":"trial","protection":{"neighbours":"replace-one","row_count_is_public":false,"rows_per_unit":1,"unit":true,"unit_name":"patient"},"sequence":4,"spent":{"delta":"0","epsilon":"0"},"time":"2026-11-18T04:21:55.783566+00:00","who":"carol","why":"a study"}');
INSERT INTO "heldout_entries" VALUES(5,'c1ee6c96d1bcf7a3e31cb8edbb0369a1','3c308d3e05c9d485e3576b8c568f8484ec2b7aa61a3b0e968a62d103d998a3e5','e9994e1f231b14dcd5efb71db10effe21196e9450a095cb602da510a39cc094e','{"above":[{"account":"a8ff78444f95b8c8fcf6a9f4b2cbadd2","budget":{"delta":"0","epsilon":"2"},"spent":{"delta":"0","epsilon":"0"}},{"account":"ea60bc9396e64ac00b79def1e6e0a322","budget":{"delta":"0","epsilon":"2"},"spent":{"delta":"0","epsilon":"0"}}],"account":"c1ee6c96d1bcf7a3e31cb8edbb0369a1","analyst":"ana","budget":{"delta":"0","epsilon":"1"},"kind":"grant","ledger":"2174f7c6572a080e0bd275ead884d13e","sequence":5,"spent":{"delta":"0","epsilon":"0"},"time":"2026-11-18T04:21:55.793058+00:00","who":"carol"}');
INSERT INTO "heldout_entries" VALUES(6,'c1ee6c96d1bcf7a3e31cb8edbb0369a1','e9994e1f231b14dcd5efb71db10effe21196e9450a095cb602da510a39cc094e','edc43a4ebbb25f69f1b9bbc951d39c5f43beef915441f6c4767d48563ee5c64e','{"above":[{"account":"a8ff78444f95b8c8fcf6a9f4b2cbadd2","budget":{"delta":"0","epsilon":"2"},"spent":{"delta":"0","epsilon":"1/3"}},{"account":"ea60bc9396e64ac00b79def1e6e0a322","budget":{"delta":"0","epsilon":"2"},"spent":{"delta":"0","epsilon":"1/3"}}],"account":"c1ee6c96d1bcf7a3e31cb8edbb0369a1","analyst":"ana","budget":{"delta":"0","epsilon":"1"},"charge":{"delta":"0","epsilon":"1/3"},"event":{"kind":"exponential","parameters":{"epsilon":"1/3"},"version":1},"kind":"booking","ledger":"2174f7c6572a080e0bd275ead884d13e","loss":{"delta":"0","epsilon":"1/3"},"request":{"reference":"one","release":"auc"},"sequence":6,"spent":{"delta":"0","epsilon":"1/3"},"time":"2026-11-18T04:21:55.823756+00:00"}');
INSERT INTO "heldout_entries" VALUES(7,'c1ee6c96d1bcf7a3e31cb8edbb0369a1','edc43a4ebbb25f69f1b9bbc951d39c5f43beef915441f6c4767d48563ee5c64e','4ab3878053b4dfaea2a4971d3c7e97ca96dff38511d7e6e97d35212c9031a4eb','{"above":[{"account":"a8ff78444f95b8c8fcf6a9f4b2cbadd2","budget":{"delta":"0","epsilon":"2"},"spent":{"delta":"0","epsilon":"1/3"}},{"account":"ea60bc9396e64ac00b79def1e6e0a322","budget":{"delta":"0","epsilon":"2"},"spent":{"delta":"0","epsilon":"1/3"}}],"account":"c1ee6c96d1bcf7a3e31cb8edbb0369a1","analyst":"ana","budget":{"delta":"0","epsilon":"3/2"},"kind":"raise","ledger":"2174f7c6572a080e0bd275ead884d13e","sequence":7,"spent":{"delta":"0","epsilon":"1/3"},"time":"2026-11-18T04:21:55.835666+00:00","who":"carol"}');
INSERT INTO "heldout_entries" VALUES(8,'109abe76df9cee88699d9e83b20ee3e4','4ab3878053b4dfaea2a4971d3c7e97ca96dff38511d7e6e97d35212c9031a4eb','3fd1e47d46abffa9af6d23bea182f6e6371ac7c9a0880a3db59a5dcc8d418b9c','{"above":[{"account":"a8ff78444f95b8c8fcf6a9f4b2cbadd2","budget":{"delta":"0","epsilon":"2"},"spent":{"delta":"0","epsilon":"1/3"}},{"account":"ea60bc9396e64ac00b79def1e6e0a322","budget":{"delta":"0","epsilon":"2"},"spent":{"delta":"0","epsilon":"1/3"}}],"account":"109abe76df9cee88699d9e83b20ee3e4","analyst":"ben","budget":{"delta":"0","epsilon":"1"},"kind":"grant","ledger":"2174f7c6572a080e0bd275ead884d13e","sequence":8,"spent":{"delta":"0","epsilon":"0"},"time":"2026-11-18T04:21:55.847406+00:00","who":"carol"}');
INSERT INTO "heldout_entries" VALUES(9,'109abe76df9cee88699d9e83b20ee3e4','3fd1e47d46abffa9af6d23bea182f6e6371ac7c9a0880a3db59a5dcc8d418b9c','bf1e9d82c4d7ce894692cd2cfa0344019001c6b1e1ed204d6e69c3fe540822d2','{"above":[{"account":"a8ff78444f95b8c8fcf6a9f4b2cbadd2","budget":{"delta":"0","epsilon":"2"},"spent":{"delta":"0","epsilon":"1/3"}},{"account":"ea60bc9396e64ac00b79def1e6e0a322","budget":{"delta":"0","epsilon":"2"},"spent":{"delta":"0","epsilon":"1/3"}}],"account":"109abe76df9cee88699d9e83b20ee3e4","analyst":"ben","budget":{"delta":"0","epsilon":"1"},"closed":true,"kind":"revocation","ledger":"2174f7c6572a080e0bd275ead884d13e","sequence":9,"spent":{"delta":"0","epsilon":"0"},"time":"2026-11-18T04:21:55.863501+00:00","who":"carol"}');
INSERT INTO "heldout_entries" VALUES(10,'b3c11ea78e3c5fbcd34ca6168cf3f28d','bf1e9d82c4d7ce894692cd2cfa0344019001c6b1e1ed204d6e69c3fe540822d2','9bf3f252f4e0ce5ce5db22fabff8fcaf3946cd55dbff30484c251031d8509f43','{"account":"b3c11ea78e3c5fbcd34ca6168cf3f28d","budget":{"delta":"1/1000000","rho":"1/2"},"kind":"registration","ledger":"2174f7c6572a080e0bd275ead884d13e","name":"old","protection":{"neighbours":"replace-one","row_count_is_public":true,"rows_per_unit":1,"unit":false,"unit_name":null},"sequence":10,"spent":{"delta":"0","rho":"0"},"time":"2026-11-18T04:21:55.891836+00:00","who":"carol"}');
INSERT INTO "heldout_entries" VALUES(11,'b3c11ea78e3c5fbcd34ca6168cf3f28d','9bf3f252f4e0ce5ce5db22fabff8fcaf3946cd55dbff30484c251031d8509f43','b85abd12bbdd36c7af7b2348208014dcad6ad71513a4d0e3ababb3396e10f541','{"account":"b3c11ea78e3c5fbcd34ca6168cf3f28d","budget":{"delta":"1/1000000","rho":"1/2"},"closed":true,"kind":"closing","ledger":"2174f7c6572a080e0bd275ead884d13e","sequence":11,"spent":{"delta":"0","rho":"0"},"time":"2026-11-18T04:21:55.894783+00:00","who":"carol"}');
CREATE TABLE heldout_ledger (
	"row" INTEGER NOT NULL, 
	schema_version INTEGER NOT NULL, 
	ledger TEXT NOT NULL, 
	key_check TEXT NOT NULL, 
	closed BIGINT NOT NULL, 
	sequence BIGINT NOT NULL, 
	head TEXT NOT NULL, 
	PRIMARY KEY ("row")
);
INSERT INTO "heldout_ledger" VALUES(1,2,'2174f7c6572a080e0bd275ead884d13e','0a3bec3334a59016eeeeb147d36b070b423ed2dfd7ce97c707ac2c78128be6d3',0,11,'b85abd12bbdd36c7af7b2348208014dcad6ad71513a4d0e3ababb3396e10f541');
CREATE TABLE heldout_references (
	reference TEXT NOT NULL, 
	sequence BIGINT NOT NULL, 
	PRIMARY KEY (reference)
);
INSERT INTO "heldout_references" VALUES('one',6);
CREATE TABLE heldout_sketches (
	account TEXT NOT NULL, 
	sketch TEXT NOT NULL, 
	PRIMARY KEY (account)
);
CREATE TABLE heldout_ties (
	mac TEXT NOT NULL, 
	account TEXT NOT NULL, 
	seal TEXT NOT NULL, 
	PRIMARY KEY (mac)
);
INSERT INTO "heldout_ties" VALUES('edeeb62d3c05f3cc285b93b335f943911c314dcc56b58d50086047d828a886fd','7260b0ac1d81af03d8b100a6180358db','cf9dd1183bf232e2d2971b750041f854da2a3e66b2a936d62741953258ecf219');
INSERT INTO "heldout_ties" VALUES('6b1e62b02fc07ffe0d2a792dbf5e2622464657fdd583a0a04468bd0376d59889','7260b0ac1d81af03d8b100a6180358db','0c0669dd35e48244c9b60aec6fc1906f387f0e4005e785d7332870b86770fd97');
CREATE INDEX ix_heldout_accounts_name ON heldout_accounts (name);
CREATE INDEX ix_heldout_accounts_parent ON heldout_accounts (parent);
CREATE INDEX ix_heldout_entries_account ON heldout_entries (account);
CREATE INDEX ix_heldout_ties_account ON heldout_ties (account);
COMMIT;
