-- Each line is an expression over columns that are declared never to be null: Spark then does not look for nulls at all.

-- never null
(i + j) is null
(i + j) is not null
isnull(i * j)
(i / j) is null
coalesce(i + j, 0)
nvl(i div j, 1)
cast(s as tinyint) is null
(i + j) <=> null
nullif(i + j, 0) is null
if(i + j is null, 1, 2)
(i + j) is null and i / j > 1
case when i + j is null then 1 else 2 end
(-i) is null
abs(i) is null
cast(i as tinyint) is null
cast(d as int) is null
i % j is null
concat(s, i + j) is null
(i + j) in (1, 2)
(m + i) is null
m / i is null
round(i, -1) is null
greatest(i + j, 1) is null
length(s) is null
substring(s, i + j) is null
array(i + j) is null
struct(i + j) is null
to_date(s) is null
sqrt(i + j) is null
ln(i) is null
sign(i + j) is null
pow(i + j, 1) is null
element_at(array(i), 5) is null
exp(i + j) is null
ceil(d + i) is null
cast(d as tinyint) is null
cast(m as tinyint) is null
cast(i as smallint) is null
cast(i as timestamp) is null
string(i + j) is null
unix_seconds(timestamp_seconds(i + j)) is null
mod(i,j) is null
i + j is distinct from null
null <=> (i + j)
bround(i + j) is null
negative(i) is null
floor(d) is null
timestamp_seconds(i) is null
date_add(date'2024-01-01', i + j) is null
cast(i as decimal(5,2)) is null
try_add(i,j) is null
size(array(i + j)) is null
array(i)[j] is null
split(s,'1')[0] is null
i + j = null
not (i + j > 1) is null
(i + j > 1) is true
(i + j > 1 and i > 0) is null
