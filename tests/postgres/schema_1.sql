-- The schema of version 1, and a little in it, as the first release made it on pgvector 0.8.
SET ROLE keeper;
CREATE SCHEMA "stemma";
SET search_path = "stemma", pg_catalog;
CREATE DOMAIN embedding AS "public".halfvec;
CREATE DOMAIN question AS "public".vector;
CREATE FUNCTION distance(kept embedding, asked question) RETURNS double precision
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT CASE
    WHEN "public".vector_dims(kept) = "public".vector_dims(asked)
    THEN kept::"public".vector OPERATOR("public".<=>) asked END';
CREATE TABLE meta (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    sequence bigint NOT NULL, epoch bigint NOT NULL,
    recalled bigint NOT NULL, forgotten bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO meta VALUES (true, 0, 0, 0, 0);
CREATE TABLE entries (
    id text COLLATE "C" PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL, node text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL, "index" text COLLATE "C" NOT NULL,
    hop bigint NOT NULL, record bytea NOT NULL, sequence bigint NOT NULL
);
CREATE INDEX ON entries (sequence);
CREATE INDEX ON entries (tenant, node);
CREATE INDEX ON entries (model) WHERE model <> '';
CREATE INDEX ON entries ("index") WHERE "index" <> '';
CREATE TABLE vectors (
    entry text COLLATE "C" PRIMARY KEY, "group" text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL, sequence bigint NOT NULL,
    vector embedding NOT NULL, checksum bigint NOT NULL
);
CREATE INDEX ON vectors ("group");
CREATE INDEX ON vectors (sequence);
CREATE TABLE removed (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sequence bigint NOT NULL, "group" text COLLATE "C" NOT NULL, entry text COLLATE "C" NOT NULL
);
CREATE INDEX ON removed (sequence);
CREATE TABLE lineages (
    child text COLLATE "C" PRIMARY KEY, tenant text COLLATE "C" NOT NULL,
    record text COLLATE "C" NOT NULL
);
CREATE TABLE edges (
    parent text COLLATE "C", child text COLLATE "C", PRIMARY KEY (parent, child)
);
CREATE INDEX ON edges (child);
CREATE TABLE source_edges (
    element text COLLATE "C", child text COLLATE "C", tenant text COLLATE "C" NOT NULL,
    PRIMARY KEY (element, child)
);
CREATE INDEX ON source_edges (child);
CREATE TABLE sources (
    owner text COLLATE "C", "index" text COLLATE "C", chunk text COLLATE "C",
    content text COLLATE "C" NOT NULL, seen bigint NOT NULL, PRIMARY KEY (owner, "index", chunk)
);
CREATE TABLE labels (
    name text COLLATE "C", value text COLLATE "C", entry text COLLATE "C",
    tenant text COLLATE "C" NOT NULL, PRIMARY KEY (entry, name, value)
);
CREATE INDEX ON labels USING hash (value);
CREATE TABLE recalls (
    sequence bigint PRIMARY KEY, at double precision NOT NULL,
    source text COLLATE "C", entry text COLLATE "C", tenant text COLLATE "C", tag text COLLATE "C",
    writer text COLLATE "C", subject text COLLATE "C", model text COLLATE "C",
    "index" text COLLATE "C", node text COLLATE "C"
);
CREATE TABLE recalled (
    entry text COLLATE "C", recall bigint, tenant text COLLATE "C" NOT NULL,
    node text COLLATE "C" NOT NULL, hop bigint NOT NULL, position bigint NOT NULL,
    PRIMARY KEY (entry, recall)
);
CREATE INDEX ON recalled (recall, position);
CREATE TABLE judgements (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    entry text COLLATE "C" NOT NULL, tenant text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL, verdict text COLLATE "C" NOT NULL,
    by text COLLATE "C" NOT NULL, confidence double precision NOT NULL, at double precision NOT NULL
);
CREATE INDEX ON judgements (entry, number);
CREATE TABLE servings (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    entry text COLLATE "C" NOT NULL, tenant text COLLATE "C" NOT NULL,
    tier text COLLATE "C" NOT NULL, similarity double precision NOT NULL,
    at double precision NOT NULL
);
CREATE INDEX ON servings (entry, number);
CREATE TABLE counters (
    tenant text COLLATE "C", node text COLLATE "C", outcome text COLLATE "C",
    lookups bigint NOT NULL, seconds double precision NOT NULL, tokens bigint NOT NULL,
    PRIMARY KEY (tenant, node, outcome)
);
ALTER TABLE meta ENABLE ROW LEVEL SECURITY;
ALTER TABLE meta FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON meta USING ((SELECT nullif(current_setting('stemma.tenant', true), '')) IS NOT NULL);
CREATE POLICY every ON meta TO CURRENT_USER USING ((SELECT current_setting('stemma.reach', true)) = 'all');
ALTER TABLE entries ENABLE ROW LEVEL SECURITY;
ALTER TABLE entries FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON entries USING (tenant = (SELECT nullif(current_setting('stemma.tenant', true), '')));
CREATE POLICY every ON entries TO CURRENT_USER USING ((SELECT current_setting('stemma.reach', true)) = 'all');
ALTER TABLE vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE vectors FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON vectors USING (tenant = (SELECT nullif(current_setting('stemma.tenant', true), '')));
CREATE POLICY every ON vectors TO CURRENT_USER USING ((SELECT current_setting('stemma.reach', true)) = 'all');
ALTER TABLE removed ENABLE ROW LEVEL SECURITY;
ALTER TABLE removed FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON removed USING ((SELECT nullif(current_setting('stemma.tenant', true), '')) IS NOT NULL);
CREATE POLICY every ON removed TO CURRENT_USER USING ((SELECT current_setting('stemma.reach', true)) = 'all');
ALTER TABLE lineages ENABLE ROW LEVEL SECURITY;
ALTER TABLE lineages FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON lineages USING (tenant = (SELECT nullif(current_setting('stemma.tenant', true), '')));
CREATE POLICY every ON lineages TO CURRENT_USER USING ((SELECT current_setting('stemma.reach', true)) = 'all');
ALTER TABLE edges ENABLE ROW LEVEL SECURITY;
ALTER TABLE edges FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON edges USING ((SELECT nullif(current_setting('stemma.tenant', true), '')) IS NOT NULL);
CREATE POLICY every ON edges TO CURRENT_USER USING ((SELECT current_setting('stemma.reach', true)) = 'all');
ALTER TABLE source_edges ENABLE ROW LEVEL SECURITY;
ALTER TABLE source_edges FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON source_edges USING (tenant = (SELECT nullif(current_setting('stemma.tenant', true), '')));
CREATE POLICY every ON source_edges TO CURRENT_USER USING ((SELECT current_setting('stemma.reach', true)) = 'all');
ALTER TABLE sources ENABLE ROW LEVEL SECURITY;
ALTER TABLE sources FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON sources USING ((owner NOT LIKE 'tenant:%' AND (SELECT nullif(current_setting('stemma.tenant', true), '')) IS NOT NULL) OR owner = 'tenant:' || (SELECT nullif(current_setting('stemma.tenant', true), '')));
CREATE POLICY every ON sources TO CURRENT_USER USING ((SELECT current_setting('stemma.reach', true)) = 'all');
ALTER TABLE labels ENABLE ROW LEVEL SECURITY;
ALTER TABLE labels FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON labels USING (tenant = (SELECT nullif(current_setting('stemma.tenant', true), '')));
CREATE POLICY every ON labels TO CURRENT_USER USING ((SELECT current_setting('stemma.reach', true)) = 'all');
ALTER TABLE recalls ENABLE ROW LEVEL SECURITY;
ALTER TABLE recalls FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON recalls USING ((SELECT nullif(current_setting('stemma.tenant', true), '')) IS NOT NULL);
CREATE POLICY every ON recalls TO CURRENT_USER USING ((SELECT current_setting('stemma.reach', true)) = 'all');
ALTER TABLE recalled ENABLE ROW LEVEL SECURITY;
ALTER TABLE recalled FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON recalled USING (tenant = (SELECT nullif(current_setting('stemma.tenant', true), '')));
CREATE POLICY every ON recalled TO CURRENT_USER USING ((SELECT current_setting('stemma.reach', true)) = 'all');
ALTER TABLE judgements ENABLE ROW LEVEL SECURITY;
ALTER TABLE judgements FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON judgements USING (tenant = (SELECT nullif(current_setting('stemma.tenant', true), '')));
CREATE POLICY every ON judgements TO CURRENT_USER USING ((SELECT current_setting('stemma.reach', true)) = 'all');
ALTER TABLE servings ENABLE ROW LEVEL SECURITY;
ALTER TABLE servings FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON servings USING (tenant = (SELECT nullif(current_setting('stemma.tenant', true), '')));
CREATE POLICY every ON servings TO CURRENT_USER USING ((SELECT current_setting('stemma.reach', true)) = 'all');
ALTER TABLE counters ENABLE ROW LEVEL SECURITY;
ALTER TABLE counters FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON counters USING (tenant = (SELECT nullif(current_setting('stemma.tenant', true), '')));
CREATE POLICY every ON counters TO CURRENT_USER USING ((SELECT current_setting('stemma.reach', true)) = 'all');
COMMENT ON TABLE meta IS 'Stemma cache, schema version 1';
RESET ROLE;
DELETE FROM meta;
INSERT INTO meta (one, sequence, epoch, recalled, forgotten) VALUES ('true', '7', '5', '5', '0');
INSERT INTO entries (id, tenant, node, model, index, hop, record, sequence) VALUES ('root', 'acme', 'answer', '', '', '1', E'\\xe21a8827000000000000f03f000000000000000000000040fc54d94100000040fc54d941000000000000f87f000000000000f87f010000000000000000000000000000000000000000000000010000000000000001000000000000000000000000000000c23a576c000000006800000000000000726f6f741f61636d651f616e737765721f1f1f706172746974696f6e206f662061636d651f67726f7570206f662061636d651f6a736f6e2f311f6f6e651f1f5b6e756c6c2c6e756c6c2c6e756c6c2c6e756c6c2c6e756c6c2c5b2274225d5d1f756e6b6e6f776e1f226f6e6522', '1');
INSERT INTO entries (id, tenant, node, model, index, hop, record, sequence) VALUES ('other', 'other', 'answer', '', '', '1', E'\\x0b110fc6000000000000f03f000000000000000000000040fc54d94100000040fc54d941000000000000f87f000000000000f87f01000000000000000000000000000000000000000000000001000000000000000300000000000000000000000000000000000000000000004c000000000000006f746865721f6f746865721f616e737765721f1f1f706172746974696f6e206f66206f746865721f67726f7570206f66206f746865721f6a736f6e2f311f6f6e651f1f1f756e6b6e6f776e1f226f6e6522', '3');
INSERT INTO entries (id, tenant, node, model, index, hop, record, sequence) VALUES ('child', 'acme', 'answer', '', '', '1', E'\\x409eb311000000000000f03f000000000000000000000040fc54d94100000040fc54d941000000000000f87f000000000000f87f01000000000000000000000000000000000000000000000001000000000000000200000000000000000000000000000057f264fa000000005d000000000000006368696c641f61636d651f616e737765721f1f1f706172746974696f6e206f662061636d651f67726f7570206f662061636d651f6a736f6e2f311f6f6e651f1f1f737570706f727465641f3d576861742069732061207374656d6d613f226f6e6522', '2');
INSERT INTO vectors (entry, "group", tenant, sequence, vector, checksum) VALUES ('child', 'group of acme', 'acme', '2', '[1,0]', '2769224739');
INSERT INTO vectors (entry, "group", tenant, sequence, vector, checksum) VALUES ('other', 'group of other', 'other', '3', '[0,1]', '4189965069');
INSERT INTO removed (sequence, "group", entry) VALUES ('5', 'group of acme', 'gone');
INSERT INTO lineages (child, tenant, record) VALUES ('root', 'acme', '[[],[["doc-1","chunk-1","first edition","tenant:acme","docs","ambient"]]]');
INSERT INTO lineages (child, tenant, record) VALUES ('child', 'acme', '[[["root","one","ambient"]],[]]');
INSERT INTO lineages (child, tenant, record) VALUES ('other', 'other', '');
INSERT INTO lineages (child, tenant, record) VALUES ('gone', 'acme', '');
INSERT INTO edges (parent, child) VALUES ('root', 'child');
INSERT INTO source_edges (element, child, tenant) VALUES ('chunk-1', 'root', 'acme');
INSERT INTO source_edges (element, child, tenant) VALUES ('doc-1', 'root', 'acme');
INSERT INTO sources (owner, index, chunk, content, seen) VALUES ('tenant:acme', 'docs', 'chunk-1', 'first edition', '0');
INSERT INTO labels (name, value, entry, tenant) VALUES ('tag', 't', 'root', 'acme');
INSERT INTO recalls (sequence, at, source, entry, tenant, tag, writer, subject, model, index, node) VALUES ('5', '1700000000', NULL, 'gone', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO recalled (entry, recall, tenant, node, hop, "position") VALUES ('gone', '5', 'acme', 'answer', '1', '1');
INSERT INTO judgements (entry, tenant, value, verdict, by, confidence, at) VALUES ('child', 'acme', 'one', 'supported', 't', '1', '1700000000');
INSERT INTO servings (entry, tenant, tier, similarity, at) VALUES ('child', 'acme', 'exact', '1', '1700000000');
INSERT INTO counters (tenant, node, outcome, lookups, seconds, tokens) VALUES ('acme', 'answer', 'exact', '1', '0', '0')
