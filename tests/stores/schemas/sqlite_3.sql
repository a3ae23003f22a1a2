PRAGMA application_id = 1398033729;
PRAGMA user_version = 3;
BEGIN TRANSACTION;
CREATE TABLE counters (
        tenant TEXT NOT NULL, node TEXT NOT NULL, outcome TEXT NOT NULL,
        lookups INTEGER NOT NULL, seconds REAL NOT NULL, tokens INTEGER NOT NULL,
        PRIMARY KEY (tenant, node, outcome)
    ) WITHOUT ROWID;
INSERT INTO "counters" VALUES('acme','answer','exact',3,1.5,7);
CREATE TABLE edges (
        parent TEXT NOT NULL, child TEXT NOT NULL, PRIMARY KEY (parent, child)
    ) WITHOUT ROWID;
INSERT INTO "edges" VALUES('a','b');
CREATE TABLE entries (
        id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        node TEXT NOT NULL,
        model TEXT NOT NULL,
        "index" TEXT NOT NULL,
        hop INTEGER NOT NULL,
        record BLOB NOT NULL,
        sequence INTEGER NOT NULL
    );
INSERT INTO "entries" VALUES('a','acme','retrieval','','',1,X'1196DE9C000000000000F03F000000000000000000000040FC54D94100000040FC54D941000000000000F87F000000000000F87F010000000000000000000000000000000000000000000000010000000000000001000000000000000000000000000000C23A576C000000004800000000000000611F61636D651F72657472696576616C1F1F1F706172746974696F6E206F662061636D651F67726F7570206F662061636D651F6A736F6E2F311F6F6E651F1F1F756E6B6E6F776E1F226F6E6522',1);
INSERT INTO "entries" VALUES('b','acme','answer','','',1,X'5D260F57000000000000F03F000000000000000000000040FC54D94100000040FC54D941000000000000F87F000000000000F87F010000000000000000000000000000000000000000000000010000000000000002000000000000000000000000000000249F1274000000006300000000000000621F61636D651F616E737765721F1F1F706172746974696F6E206F662061636D651F67726F7570206F662061636D651F6A736F6E2F311F6F6E651F1F5B6E756C6C2C6E756C6C2C6E756C6C2C2273222C2277222C5B2274225D5D1F756E6B6E6F776E1F226F6E6522',2);
INSERT INTO "entries" VALUES('c','other','answer','m','',1,X'2344B4BB000000000000F03F000000000000000000000040FC54D94100000040FC54D941000000000000F87F000000000000F87F01000000000000000000000000000000000000000000000001000000000000000300000000000000000000000000000000000000000000004D00000000000000631F6F746865721F616E737765721F6D1F1F706172746974696F6E206F66206F746865721F67726F7570206F66206F746865721F6A736F6E2F311F6F6E651F1F1F737570706F727465641F3D66226F6E6522',3);
CREATE TABLE judgements (
        number INTEGER PRIMARY KEY,
        entry TEXT NOT NULL, value TEXT NOT NULL, verdict TEXT NOT NULL,
        by TEXT NOT NULL, confidence REAL NOT NULL, at REAL NOT NULL,
        question TEXT NOT NULL DEFAULT ''
    );
INSERT INTO "judgements" VALUES(1,'c','one','supported','ann',0.75,1700000000.0,'');
CREATE TABLE labels (
        name TEXT NOT NULL, value TEXT NOT NULL, entry TEXT NOT NULL,
        PRIMARY KEY (name, value, entry)
    ) WITHOUT ROWID;
INSERT INTO "labels" VALUES('subject','s','b');
INSERT INTO "labels" VALUES('tag','t','b');
INSERT INTO "labels" VALUES('writer','w','b');
CREATE TABLE lessons (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        tenant TEXT NOT NULL, node TEXT NOT NULL, state TEXT NOT NULL, writer TEXT NOT NULL,
        candidate TEXT NOT NULL, known TEXT NOT NULL, weight REAL NOT NULL,
        correct INTEGER NOT NULL, by TEXT NOT NULL, requests INTEGER NOT NULL, at REAL NOT NULL
    );
INSERT INTO "lessons" VALUES(1,'acme','answer','verified','w','b','[1.0, -0.1, 1e-17, 3.0]',20.0,1,'equal',7,1700000000.0);
CREATE TABLE lineages (child TEXT PRIMARY KEY, record TEXT NOT NULL);
INSERT INTO "lineages" VALUES('a','[[],[["doc-1","chunk-1","first edition","tenant:acme","docs","ambient"]]]');
INSERT INTO "lineages" VALUES('b','[[["a","one","ambient"]],[]]');
INSERT INTO "lineages" VALUES('c','');
INSERT INTO "lineages" VALUES('d','');
CREATE TABLE meta (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        sequence INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        recalled INTEGER NOT NULL,
        forgotten INTEGER NOT NULL,
        began INTEGER NOT NULL DEFAULT 0
    );
INSERT INTO "meta" VALUES(1,8,6,6,0,0);
CREATE TABLE recalled (
        entry TEXT NOT NULL,
        recall INTEGER NOT NULL,
        tenant TEXT NOT NULL,
        node TEXT NOT NULL,
        hop INTEGER NOT NULL,
        position INTEGER NOT NULL,
        PRIMARY KEY (entry, recall)
    ) WITHOUT ROWID;
INSERT INTO "recalled" VALUES('d',6,'acme','answer',1,0);
CREATE TABLE recalls (
        sequence INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        source TEXT, entry TEXT, tenant TEXT, tag TEXT, writer TEXT,
        subject TEXT, model TEXT, "index" TEXT, node TEXT
    );
INSERT INTO "recalls" VALUES(6,1700000000.0,NULL,NULL,NULL,'gone',NULL,NULL,NULL,NULL,NULL);
CREATE TABLE removed (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        sequence INTEGER NOT NULL,
        "group" TEXT NOT NULL,
        entry TEXT NOT NULL
    );
INSERT INTO "removed" VALUES(1,6,'group of acme','d');
CREATE TABLE servings (
        number INTEGER PRIMARY KEY,
        entry TEXT NOT NULL, tenant TEXT NOT NULL, tier TEXT NOT NULL,
        similarity REAL NOT NULL, at REAL NOT NULL
    );
INSERT INTO "servings" VALUES(1,'a','acme','exact',1.0,1700000000.0);
CREATE TABLE source_edges (
        element TEXT NOT NULL, child TEXT NOT NULL, PRIMARY KEY (element, child)
    ) WITHOUT ROWID;
INSERT INTO "source_edges" VALUES('chunk-1','a');
INSERT INTO "source_edges" VALUES('doc-1','a');
CREATE TABLE sources (
        owner TEXT NOT NULL,
        "index" TEXT NOT NULL,
        chunk TEXT NOT NULL,
        content TEXT NOT NULL,
        seen INTEGER NOT NULL,
        first REAL NOT NULL DEFAULT 0, last REAL NOT NULL DEFAULT 0, checks INTEGER NOT NULL DEFAULT 0, changes INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (owner, "index", chunk)
    ) WITHOUT ROWID;
INSERT INTO "sources" VALUES('tenant:acme','docs','chunk-1','first edition',0,1700000000.0,1700000000.0,0,0);
CREATE TABLE vectors (
        sequence INTEGER PRIMARY KEY,
        entry TEXT NOT NULL UNIQUE,
        "group" TEXT NOT NULL,
        vector BLOB NOT NULL,
        checksum INTEGER NOT NULL
    );
INSERT INTO "vectors" VALUES(1,'a','group of acme',X'003C0000',2621894676);
INSERT INTO "vectors" VALUES(2,'b','group of acme',X'00380038',270231295);
INSERT INTO "vectors" VALUES(3,'c','group of other',X'0000003C',4170076090);
CREATE INDEX entries_by_sequence ON entries (sequence);
CREATE INDEX entries_by_tenant ON entries (tenant, node);
CREATE INDEX entries_by_model ON entries (model) WHERE model <> '';
CREATE INDEX entries_by_index ON entries ("index") WHERE "index" <> '';
CREATE INDEX labels_by_entry ON labels (entry);
CREATE INDEX recalls_by_source ON recalls ("source", sequence) WHERE "source" IS NOT NULL;
CREATE INDEX recalls_by_tenant ON recalls ("tenant", sequence) WHERE "tenant" IS NOT NULL;
CREATE INDEX recalls_by_tag ON recalls ("tag", sequence) WHERE "tag" IS NOT NULL;
CREATE INDEX recalls_by_writer ON recalls ("writer", sequence) WHERE "writer" IS NOT NULL;
CREATE INDEX recalls_by_subject ON recalls ("subject", sequence) WHERE "subject" IS NOT NULL;
CREATE INDEX recalls_by_model ON recalls ("model", sequence) WHERE "model" IS NOT NULL;
CREATE INDEX recalls_by_index ON recalls ("index", sequence) WHERE "index" IS NOT NULL;
CREATE INDEX recalled_by_recall ON recalled (recall, position);
CREATE INDEX judgements_by_entry ON judgements (entry);
CREATE INDEX servings_by_entry ON servings (entry);
CREATE INDEX lessons_by_tenant ON lessons (tenant, node, number);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('removed',1);
INSERT INTO "sqlite_sequence" VALUES('lessons',1);
COMMIT;
