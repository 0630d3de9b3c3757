"""SQL that reaches outside of views: files, statements, functions, other tables, and forms that hide them."""

from __future__ import annotations

_FILES = """
with sqlite_master as (select * from sqlite_master) select * from sqlite_master
with pg_tables as (select * from pg_tables, totals) select * from pg_tables
with duckdb_views as (select 1) select * from duckdb_views union all (with x as (select * from duckdb_tables) select 1 from x)
select (with duckdb_views as (select 1) select 1), sql from duckdb_views
with a as (select * from pg_class), pg_class as (select 1) select * from a
with "_rows of totals 0" as (select * from "_rows of totals 0", totals) select * from "_rows of totals 0"
select * from read_csv('/etc/passwd')
select * from read_csv_auto('/etc/passwd')
select * from read_text('/etc/passwd')
select * from read_blob('/etc/passwd')
select * from read_json('/etc/passwd')
select * from read_json_auto('/etc/passwd')
select * from read_json_objects('/etc/passwd')
select * from read_ndjson('/etc/passwd')
select * from read_ndjson_auto('/etc/passwd')
select * from read_ndjson_objects('/etc/passwd')
select * from read_parquet('/tmp/*')
select * from parquet_scan('/tmp/x.parquet')
select * from parquet_metadata('/tmp/x.parquet')
select * from parquet_schema('/tmp/x.parquet')
select * from parquet_file_metadata('/tmp/x.parquet')
select * from parquet_kv_metadata('/tmp/x.parquet')
select * from parquet_bloom_probe('/tmp/x.parquet', 'a', 1)
select * from sniff_csv('/etc/passwd')
select * from '/etc/passwd'
select * from "/etc/passwd"
select * from '/etc/passwd' as totals
select * from '/tmp/x.csv'
select * from '/tmp/x.parquet'
select * from '/tmp/x.json'
select * from "tokens.json"
select * from 'file:///etc/passwd'
select * from 'http://127.0.0.1/x.csv'
select * from 'https://example.com/x.parquet'
select * from 's3://bucket/x.parquet'
select * from 'gcs://bucket/x.parquet'
select * from 'hf://datasets/x/y.csv'
select * from '/proc/self/environ'
select * from read_text('/proc/self/environ')
select * from read_text(['/etc/passwd', '/etc/hosts'])
select * from read_text('/etc/' || 'passwd')
select * from read_text(chr(47) || 'etc/passwd')
select * from read_csv('/etc/passwd', delim = ':')
select * from read_csv_auto('/dev/stdin')
select * from glob('/*')
select * from glob('**')
select * from totals, read_csv('/etc/passwd')
select * from totals join read_text('/etc/passwd') on true
select * from totals left join read_text('/etc/passwd') t on t.filename = url
select * from totals, lateral (select * from read_text(url))
select * from totals, lateral read_text(url)
select (select content from read_text('/etc/passwd')) from totals
select array(select content from read_text('/etc/passwd'))
select exists(from read_text('/etc/passwd'))
select * from totals where url in (select content from read_text('/etc/passwd'))
select * from totals where exists (select * from glob('/*'))
select * from totals order by (select count(*) from glob('/*'))
select user from totals group by (select content from read_text('/etc/passwd')), user
select user from totals group by user having (select count(*) from glob('/*')) > 0
select * from totals limit (select count(*) from glob('/*'))
select * from totals qualify row_number() over (order by (select count(*) from glob('/*'))) = 1
with x as (select * from read_text('/etc/passwd')) select * from x
with x as (with y as (select * from read_text('/etc/passwd')) select * from y) select * from x
with recursive x as (select 1 union all select count(*) from glob('/*')) select * from x
with totals as (select * from read_text('/etc/passwd')) select * from totals
with x as materialized (select * from glob('/*')) select * from x
select * from (select * from (select * from (select * from read_text('/etc/passwd'))))
select 1 union select content from read_text('/etc/passwd')
select 1 union all by name select content from read_text('/etc/passwd')
select 1 except select content from read_text('/etc/passwd')
select 1 intersect select content from read_text('/etc/passwd')
from read_text('/etc/passwd')
from '/etc/passwd'
from '/etc/passwd' select *
from read_text('/etc/passwd') select content
select * from (from read_text('/etc/passwd'))
select * from (values (1)) t, read_text('/etc/passwd')
pivot read_text('/etc/passwd') on filename using count(*)
unpivot read_text('/etc/passwd') on content into name n value v
select * from (pivot '/etc/passwd' on column0 using count(*))
select * from (describe select * from '/etc/passwd')
select * from (summarize '/etc/passwd')
select * from (show tables)
select read_text('/etc/passwd')
select content from read_text(filename := '/etc/passwd')
"""

_STATEMENTS = """
copy totals to '/tmp/out.csv'
copy (select * from totals) to '/tmp/out.csv'
copy (select * from totals) to '/tmp/out.parquet' (format parquet)
copy totals from '/etc/passwd'
copy from database memory to other
export database '/tmp/out'
export database '/tmp/out' (format parquet)
import database '/tmp/out'
attach '/tmp/x.db' as x
attach ':memory:' as x
attach 'postgres:host=127.0.0.1' as x (type postgres)
attach if not exists '/tmp/x.db'
attach or replace '/tmp/x.db' as memory
detach memory
detach database if exists memory
install httpfs
install httpfs from community
install httpfs from 'http://127.0.0.1/'
force install httpfs
load httpfs
load '/tmp/evil.duckdb_extension'
update extensions
set threads = 1
set global threads = 1
set session threads = 1
set local threads = 1
set enable_external_access = true
set allow_unsigned_extensions = true
set lock_configuration = false
set memory_limit = '100GB'
set temp_directory = '/tmp'
set home_directory = '/tmp'
set secret_directory = '/tmp'
set extension_directory = '/tmp'
set search_path = 'main'
set schema = 'main'
set variable x = 1
reset threads
reset global memory_limit
reset variable x
pragma database_list
pragma show_tables
pragma table_info('totals')
pragma storage_info('totals')
pragma version
pragma platform
pragma enable_profiling
pragma enable_logging
pragma profiling_output = '/tmp/x'
pragma memory_limit = '100GB'
pragma add_parquet_key('k', '1234567890123456')
pragma import_database('/tmp')
pragma functions
pragma collations
pragma user_agent
pragma force_checkpoint
pragma verify_parallelism
call pragma_version()
call duckdb_tables()
call pragma_table_info('totals')
call enable_logging()
call dbgen(sf = 1)
call start_ui()
create table t as select 1
create temp table t as select 1
create or replace table totals as select 1
create view v as select 1
create or replace view totals as select 1
create macro f() as 1
create macro f() as table select * from read_text('/etc/passwd')
create temp macro f(a) as a + 1
create or replace function f(a) as a
create schema s
create sequence s
create index i on totals (url)
create unique index i on totals (url)
create type mood as enum ('a')
create secret s (type s3, key_id 'x', secret 'y')
create persistent secret s (type s3)
create or replace secret s (type http, bearer_token 'x')
drop secret s
create database x
insert into totals values (1)
insert into totals select * from totals
insert or replace into totals values (1)
delete from totals
delete from totals where url = '/a' returning *
truncate totals
update totals set views = 1
update totals set views = 1 returning *
merge into totals using totals t on true when matched then delete
drop view totals
drop table if exists totals
drop schema main cascade
drop macro f
drop type mood
alter table totals rename to x
alter table totals add column x int
alter view totals rename to x
comment on view totals is 'x'
explain select 1
explain analyze select * from totals
describe totals
describe select 1
summarize totals
show tables
show all tables
show databases
show totals
use memory
checkpoint
force checkpoint
vacuum
vacuum analyze totals
analyze
begin
begin transaction
commit
rollback
abort
prepare q as select 1
prepare q as select * from read_text('/etc/passwd')
execute q
execute q(1)
deallocate q
declare c cursor for select 1
fetch c
listen x
kill 1
grant all on totals to public
revoke all on totals from public
lock totals
.tables
.read /etc/passwd
.shell id
"""

_FUNCTIONS = """
select getenv('HOME')
select getvariable('x')
select current_setting('temp_directory')
select current_setting('secret_directory')
select current_database()
select current_schema()
select current_schemas(true)
select current_query()
select current_user
select session_user
select user()
select version()
select pg_typeof(1)
select txid_current()
select currval('x')
select nextval('x')
select setseed(0.5)
select system('id')
select shell('id')
select query('select 1')
select write_log('x')
select add_parquet_key('a', 'b')
select in_search_path('memory', 'main')
select pg_get_viewdef(1)
select pg_get_expr('x', 1)
select col_description(1, 1)
select obj_description(1, 'x')
select has_table_privilege('totals', 'select')
select icu_sort_key('a', 'de')
select json_execute_serialized_sql('{}')
select json_serialize_sql('select 1')
select json_deserialize_sql('{}')
select from_json('{}', '{}')
select load_extension('x')
select lo_import('/etc/passwd')
select pg_read_file('/etc/passwd')
select pg_ls_dir('/')
select pg_sleep(100)
select dblink('x', 'select 1')
select xp_cmdshell('id')
select load_file('/etc/passwd')
select readfile('/etc/passwd')
select writefile('/tmp/x', 'y')
select sys_eval('id')
select eval('1')
select getenv(url) from totals
select upper(getenv('HOME'))
select coalesce(null, getenv('HOME'))
select case when true then getenv('HOME') end
select list_transform([1], lambda x: getenv('HOME'))
select list_filter(['HOME'], x -> getenv(x) is not null)
select list_reduce(['a', 'b'], (x, y) -> getenv(x))
select max(getenv('HOME')) over () from totals
select sum(views) filter (where getenv('HOME') = 'x') from totals
select 'HOME'.getenv()
select getenv ('HOME')
select "getenv"('HOME')
select GetEnv('HOME')
select main.getenv('HOME')
select system.main.getenv('HOME')
select pg_catalog.current_setting('threads')
select cast(getenv('HOME') as varchar)
select getenv('HOME')::varchar
select try_cast(getenv('HOME') as int)
select struct_pack(a := getenv('HOME'))
select {'a': getenv('HOME')}
select [getenv('HOME')]
select map {'a': getenv('HOME')}
select columns(c -> getenv(c) is null) from totals
select * replace (getenv('HOME') as url) from totals
select unnest([getenv('HOME')])
select error(getenv('HOME'))
select repeat('x', 2000000000) || getenv('X')
"""

_TABLES = """
select * from duckdb_settings()
select * from duckdb_tables()
select * from duckdb_views()
select * from duckdb_columns()
select * from duckdb_databases()
select * from duckdb_secrets()
select * from duckdb_functions()
select * from duckdb_extensions()
select * from duckdb_logs()
select * from duckdb_log_contexts()
select * from duckdb_memory()
select * from duckdb_temporary_files()
select * from duckdb_types()
select * from duckdb_variables()
select * from duckdb_constraints()
select * from duckdb_dependencies()
select * from duckdb_indexes()
select * from duckdb_keywords()
select * from duckdb_optimizers()
select * from duckdb_schemas()
select * from duckdb_sequences()
select * from duckdb_external_file_cache()
select * from duckdb_prepared_statements()
select * from duckdb_approx_database_count()
select * from which_secret('s3://x', 's3')
select * from pragma_version()
select * from pragma_database_size()
select * from pragma_metadata_info()
select * from pragma_show('totals')
select * from pragma_storage_info('totals')
select * from pragma_table_info('totals')
select * from pragma_collations()
select * from pragma_platform()
select * from pragma_user_agent()
select * from pragma_last_profiling_output()
select * from information_schema.tables
select * from information_schema.columns
select * from information_schema.schemata
select * from "information_schema"."tables"
select * from memory.information_schema.tables
select * from system.information_schema.tables
select * from pg_catalog.pg_tables
select * from pg_catalog.pg_settings
select * from pg_catalog.pg_class
select * from temp.main.totals
select * from memory.main.totals
select * from memory.totals
select * from main.totals
select * from "main"."totals"
select * from sqlite_master
select * from sqlite_temp_master
select * from sqlite_schema
select * from pg_tables
select * from duckdb_settings
select * from duckdb_secrets
select * from totals_rows
select * from "_rows of totals 0"
select * from "_rows of totals"
select * from query('select 1')
select * from query_table('totals')
select * from query_table(['totals'])
select * from range(1000000000)
select * from generate_series(1, 1000000000)
select * from repeat('x', 1000000000)
select * from repeat_row(1, num_rows = 1000000000)
select * from unnest(range(1000000000))
select * from test_all_types()
select * from seq_scan('totals')
select * from index_scan('totals')
select * from arrow_scan(1, 2, 3)
select * from arrow_scan_dumb(1, 2, 3)
select * from pandas_scan(1)
select * from python_map_function(1)
select * from sqlite_scan('/tmp/x.db', 't')
select * from postgres_scan('host=x', 'public', 't')
select * from mysql_scan('x', 'y', 'z')
select * from iceberg_scan('/tmp/x')
select * from delta_scan('/tmp/x')
select * from st_read('/etc/passwd')
select * from read_xlsx('/tmp/x.xlsx')
select * from load_aws_credentials()
select * from checkpoint()
select * from force_checkpoint()
select * from enable_logging()
select * from disable_logging()
select * from enable_profiling()
select * from truncate_duckdb_logs()
select * from json_execute_serialized_sql('{}')
select * from sql_auto_complete('select')
select * from summary((select * from totals))
select * from histogram_values('totals', 'views')
select * into x from totals
select * into outfile '/tmp/x' from totals
table "/etc/passwd"
table pg_settings
"""

_FORMS = """
select 1; drop view totals
select 1; select 2
select 1;; select 2
;select 1; select 2
select 1 /* ; */ ; drop view totals
select/**/content/**/from/**/read_text('/etc/passwd')
select * from read_text/* */('/etc/passwd')
select * from /*! */ read_text('/etc/passwd')
/* comment */ copy totals to '/tmp/out.csv'
-- comment
/* open
select 'a
select "a
select $$a
select $1
select $x
select ?
select ?1
select :x
select @x
select @@version
select #1, getenv('HOME')
select getenv(E'HOME')
select getenv(U&'HOME')
select getenv($$HOME$$)
select getenv(x'484f4d45')
select \u0067etenv('HOME')
select g\u0435tenv('HOME')
select \uff47\uff45\uff54\uff45\uff4e\uff56('HOME')
select getenv\u00a0('HOME')
select getenv\u200b('HOME')
select \u202egetenv('HOME')
\ufeffcopy totals to '/tmp/out.csv'
select * from totals where url = '' or 1 = 1; copy totals to '/tmp/x'
select * from totals at (version => 1)
select * from totals for update
select * from totals tablesample (read_text('/etc/passwd'))
select * from totals using sample reservoir(getenv('X') rows)
select 1 format json
select 1 into dumpfile '/tmp/x'
(copy totals to '/tmp/out.csv')
(select 1); (select 2)
with x as (delete from totals returning *) select * from x
with x as (insert into totals values (1) returning *) select * from x
with x as (update totals set views = 1 returning *) select * from x
with x as (copy totals to '/tmp/x') select * from x
select (attach '/tmp/x.db')
select (set threads = 1)
values (getenv('HOME'))
nonsense
select
select * from
from
with
"""

_QUOTED = """
select extract("year from date '2026-01-01'), current_setting('threads'), extract(year" from date '2026-01-01')
select extract("year from date '2026-01-01'), (select count(*) from duckdb_settings()), extract(year" from date '2026-01-01')
select cast(1 as decimal(5, "2)), current_setting('threads'), cast(1 as decimal(5, 2"))
select 1::decimal("5,2)), current_setting('threads'), (cast(1 as decimal(5,2")
select cast(1 as "x y), current_setting('threads'), cast(1 as int")
select cast(1 as "s.t), current_setting('threads'), cast(1 as int")
select try_cast(1 as "x y), current_setting('threads'), cast(1 as int")
select null::"x y[]), current_setting('threads'), (1::int"
select interval 1 "day), current_setting('threads'), (interval 1 day"
select date_part("year', date '2026-01-01'), current_setting('threads'), ('x", date '2026-01-01')
select url collate "nocase, current_setting('threads')" from totals
select * from totals using sample 1 "rows), current_setting('threads')"
select sum(views) over (rows "unbounded preceding), current_setting('threads'), (1" ) from totals
select url as x -- */, current_setting('threads') as y from totals /*
"""

ESCAPES = [
    *(line for block in (_FILES, _STATEMENTS, _FUNCTIONS, _TABLES, _FORMS, _QUOTED) for line in block.splitlines() if line),
    "",
    ";",
    "\0",
    "select '\0' || getenv('HOME')",
    "(" * 3_000,
    "select " + "(" * 500 + "1" + ")" * 500,
    "select " + "not " * 20_000 + "true",
    "select " + " + ".join(["1"] * 20_000),
    "select '" + "x" * 200_000 + "'",
    "with " + ", ".join(f"c{number} as (select * from glob('/*'))" for number in range(100)) + " select 1",
]
