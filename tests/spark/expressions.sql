-- Each line is an expression over the nasty table (tests/support/nasty.py) that Spark and we must evaluate alike.

-- arithmetic
i + i2
l + l2
y + y2
h + h2
i + l
i + 1
l - 5
l + (-5)
i * i2
l * l2
l * 3
y * y2
h * i
i - i2
d + d2
d - i
d * d2
f * f2
f + d
d / d2
d / 3
d / 3.0D
1 / d
i / i2
i / 10
l / l2
f / f2
i % i2
l % l2
y % y2
mod(h, 7)
d % d2
d % 3
f % f2
i div i2
l div l2
l div -1
pmod(i, i2)
pmod(l, l2)
pmod(y, y2)
pmod(d, d2)
pmod(f, f2)
-i
-l
-d
-y
negative(h)
+ d
positive(i)
- z
z + 1
'5' * i
z / 2
abs(i)
abs(l)
abs(d)
abs(f)
abs(y)
abs(z)
~i
~l
i & i2
i | l
i ^ i2
y & 3
sign(d)
sign(i)
sign(m)
signum(f)
sqrt(d)
sqrt(i)
sqrt(m)
try_add(i, i2)
try_add(i, l)
try_add(m, n)
try_subtract(l, l2)
try_multiply(i, i2)
try_multiply(d, d2)
try_divide(i, i2)
try_divide(m, m2)
try_divide(d, d2)
try_mod(i, i2)
try_mod(d, d2)
null + i
(i + i2) * 2 - l
(i / i2) + (l / l2)
i + l / l2

-- decimals
m + m2
m - o
m * m2
n * n2
m / m2
o / m
n / n2
m / 3
m % m2
o % m
pmod(m, m2)
m div m2
n div n2
o div m
q div q2
p div m
m + i
m + l
m + 2
m * 2
m * 1.5
m + 2147483648
m + d
m + f
m + '1'
-m
-o
abs(m)
abs(n)
q % q2
p % p2
p % m
n % q
m + null
round(m)
round(m, 1)
round(m, -1)
round(m, -3)
round(m, 5)
bround(m, 1)
bround(m)
bround(n, -1)
bround(o, 3)
round(o, 3)
round(p, 2)
round(q, -1)
round(q, -3)
round(q)
floor(m)
ceil(m)
floor(q)
ceil(q)
ceil(p)
floor(p)
floor(o)
round(d)
round(d, 1)
round(d, 2)
round(d, 15)
bround(d)
bround(d, 2)
round(i / 3, 2)
round(l / 1000, 2)
round(z, 1)
round(i, -1)
round(i, -9)
round(i, -10)
round(i, -11)
round(i, 2)
bround(i, -1)
round(l, -2)
round(l, -18)
round(l, -19)
round(l, -20)
round(y, -1)
round(y, -2)
bround(l, -1)
round(i, null)
floor(d)
ceil(d)
floor(f)
ceiling(i)
floor(l)
greatest(m, n)
least(m, i)
coalesce(m, o)
if(b, m, 1)
m in (1, 2.5)
case when b then 1.5 else i end

-- comparisons
l >= 9223372036854775808
l < 9223372036854775808
9223372036854775808 > i
l = 9223372036854775808
q = p
d = d2
d < d2
d <=> d2
f >= f2
s = s2
s < s2
b = b2
b > b2
a = a2
a < t
t >= t2
t = a
t > '2024-01-01'
a < '2024-02-20'
s = 'abc'
i = '1'
i < z
d > z
b = z
w = t
i = l
i > d
y < h
b and b2
b or b2
not b
b is null
s is not null
isnull(i)
isnotnull(d)
i in (1, 2, 3)
i in (1, null, 3)
i in (i2, 5)
d in (0.0D, double('NaN'), 1.0D)
s in ('abc', 'ß', '')
s in (s2)
l in (1,2,3,4,5,6,7,8,9,10,11)
d in (0D,1D,2D,3D,4D, -1D)
i in (2, 100 / i2)
a in (date'2024-02-29', date'1970-01-01')
t between timestamp'2000-01-01' and '2024-12-31'
i between i2 and 100
d between d2 and 1
b is true
b is not false
b is unknown
b is distinct from b2
b and z
i is distinct from i2
equal_null(s, s2)
i <> i2
s != s2
b = true
i2 <> 0 and i / i2 > 1
i2 = 0 or i / i2 > 1
i / i2 > 1 and i2 <> 0
b and i / i2 > 1
b or i / i2 > 1
coalesce(b, false) and not b2
m = n
m = o
m > i
m < l
p = q
p > q
m = 1
m = 1.5
i > 1.5
m = d
m <=> o
isnull(m)
null = i
i <=> null
s > s2
t <=> t2
a <= a2
y <> h
binary(s) = binary(s2)
binary(s) < binary(s2)

-- choices
case when i > 5 then 'big' when i < 0 then 'neg' else 'small' end
case when b then i / i2 else 0 end
case when i2 = 0 then null else i / i2 end
case i when 1 then 'one' when 2 then 'two' end
case when b then i when b2 then l else m end
case when i / i2 > 1 then 1 when b then 2 end
if(b, i, l)
if(i2 <> 0, i % i2, -1)
case when i > 0 then i else raise_error('not above zero') end
coalesce(s, raise_error('none'))
if(b, d, raise_error('no'))
coalesce(i, i2)
coalesce(i, i / i2)
coalesce(i, l, m)
coalesce(s, 'none')
coalesce(null, i)
nvl(i, 0)
ifnull(s, '')
nvl2(i, 1, 2.5)
nullif(i, 0)
nullif(i, d)
nullif(s, '')
nullifzero(i)
zeroifnull(i)
nullifzero(d)
zeroifnull(m)
nanvl(d, 0)
nanvl(f, 1.5F)
nanvl(d, d2)
nanvl(f, d)
isnan(d)
isnan(f)
isnan(i)
greatest(i, i2)
greatest(d, d2)
least(d, d2)
least(f, f2, 0F)
greatest(i, l, m)
least(s, s2)
greatest(a, a2)
greatest(t, t2)
greatest(b, b2)
greatest(m, n)
least(i, null)
greatest(d, i)
least(l, d)
greatest(i, i / i2)
coalesce(i / i2, 1)
i2 / i is null
nvl(i2 / i, 1)
(i / i2) + (l / l2)
i + l / l2
(i + i2) * 2 - l
nullif(i, i / i2)
coalesce(a, t)
if(b, a, t)
case when b then 1Y else 2S end
case when b then 1.5 else 2 end
case when b then 1.5 else 2L end
case when b then null else 'x' end

-- texts
upper(s)
ucase(s)
lower(s)
lcase(s)
upper(i)
reverse(s)
trim(s)
ltrim(s)
rtrim(s)
btrim(s)
btrim(s, s2)
trim(both 'a' from s)
trim(leading 'ab' from s)
trim(trailing 'c' from s)
trim(s2 from s)
trim('ab', s)
ltrim('a', s)
length(s)
char_length(s)
len(s)
octet_length(s)
bit_length(s)
ascii(s)
length(i)
substring(s, 2)
substring(s, 2, 3)
substring(s, 0, 2)
substring(s, -2)
substring(s, -3, 2)
substring(s, -100, 99)
substring(s, -100, 200)
substring(s, i)
substring(s, i, i2)
substr(s, 1, -1)
substring(s, l)
substring(s from 2 for 2)
left(s, 2)
left(s, i)
right(s, 2)
right(s, i)
repeat(s, 2)
repeat(s, 0)
repeat(s, y % 5)
instr(s, s2)
instr(s, 'b')
instr(s, '')
locate('b', s)
locate(s2, s)
locate('b', s, 2)
locate('a', s, i)
locate(s2, s, 2)
locate('', s, 3)
position('c' in s)
position('a', s, 2)
replace(s, 'a', 'ZZ')
replace(s, 'a')
replace(s, '', 'x')
replace(s, 'ß', '')
replace(s, 'aa', 'a')
translate(s, 'abc', 'xy')
translate(s, 'aß👍', 'é1😀')
translate(s, 'aab', 'xyz')
translate(s, '', 'x')
split_part(s, ',', 1)
split_part(s, ',', -1)
split_part(s, ',', 3)
split_part(s, s2, 1)
split_part(s, '', 1)
split_part(s, '', 2)
split_part(s, '', -1)
split_part(s, ',', i)
split_part(s, 'a', 0)
split(s, ',')
split(s, '\\.')
split(s, 'a')
split(s, 'a', 2)
split(s, 'a', 1)
split(s, 'a', 0)
split(s, 'b', -1)
split(s, 'b', 3)
split(s, '\\|')
startswith(s, 'a')
startswith(s, s2)
endswith(s, s2)
endswith(s, 'c')
contains(s, s2)
contains(s, '.')
lpad(s, 5)
lpad(s, 5, 'xy')
rpad(s, 5, 'xy')
rpad(s, 5)
lpad(s, 0, 'a')
lpad(s, -1, 'a')
lpad(s, 4, '')
rpad(s, 6, '👍')
rpad(s, 2147483647, '')
concat(s, s2)
s || s2
s || i
concat(s)
concat(s, i, m)
concat_ws(',', s, s2)
concat_ws(s2, s, 'x')
concat_ws(',', s)
concat_ws(',')
concat_ws(s)
concat_ws('', s, i, s2)
concat_ws(null, s)
s like 'a%'
s like '%c'
s like '%b%'
s like 'abc'
s like ''
s like '%'
s like 'a_c'
s like '_'
s like '__'
s like 'a%c'
s like '%a%b%'
s like '100\\%'
s like 'under\\_score'
s like '100/%' escape '/'
s like 'line%'
s like '%\n%'
s like '%ß%'
s not like 'a%'
s ilike 'A%'
s ilike '%STR%'
s ilike 'i%'
s ilike 'ab_'
s like any ('a%', '%c')
s like all ('a%', '%c')
s rlike '^a'
s rlike 'c$'
s rlike '^abc$'
s rlike 'a.c'
s rlike '^.*k$'
s rlike '\\d+'
s rlike '[a-c]+$'
s rlike '\\s'
s rlike '\\w+'
s rlike '^\\W'
s rlike '(a|b)c'
s rlike '(?i)ABC'
s rlike '(?i)[A-C]$'
s rlike '(?s)e.b'
s rlike 'e.b'
s rlike '^$'
s rlike '$'
s rlike ''
s rlike '\\.'
s rlike 'a{2,3}'
s rlike '[^a-z]'
s rlike '(a$|k\n?)'
s rlike '\\u00df|x{40}'
s rlike 'k$|d\\r$'
s rlike '^(?:line|end)$'
regexp_like(s, 'b')
regexp(s, '^e')
substring(s, null)
left(s, null)
lpad(s, null)
replace(s, null, 'a')
s like null
s rlike null
character_length(s)
split(s, null)
translate(s, null, 'a')

-- dates
year(a)
month(a)
day(a)
dayofmonth(t)
dayofweek(a)
weekday(a)
dayofyear(a)
quarter(a)
weekofyear(a)
year(t)
month(t)
quarter(t)
dayofweek(t)
year(w)
hour(t)
minute(t)
second(t)
hour(a)
hour(w)
extract(year from t)
extract(week from a)
extract(dow from t)
extract(doy from t)
extract(hour from t)
extract(minute from t)
date_part('year', t)
date_part('hour', t)
date_part('dayofweek', a)
datepart('minute', t)
unix_date(a)
date_from_unix_date(i)
unix_seconds(t)
unix_millis(t)
unix_micros(t)
unix_timestamp(t)
unix_timestamp(a)
to_unix_timestamp(t)
timestamp_seconds(l)
timestamp_millis(l)
timestamp_micros(l)
timestamp_seconds(i)
date_add(a, i)
date_sub(a, i)
dateadd(a, i)
date_add(a, y)
date_add(t, 1)
date_add(w, 1)
a + 1
a - 1
a + i
1 + a
a - i
datediff(a, a2)
date_diff(t, a)
add_months(a, i)
add_months(a, 1)
add_months(a, -13)
add_months(t, 1)
last_day(a)
last_day(t)
date_trunc('year', t)
date_trunc('quarter', t)
date_trunc('month', t)
date_trunc('week', t)
date_trunc('day', t)
date_trunc('DD', t)
date_trunc('hour', t)
date_trunc('minute', t)
date_trunc('second', t)
date_trunc('millisecond', t)
date_trunc('microsecond', t)
date_trunc('bogus', t)
date_trunc('month', a)
trunc(a, 'year')
trunc(a, 'month')
trunc(a, 'week')
trunc(a, 'quarter')
trunc(a, 'day')
trunc(t, 'mm')
t + interval 5 minutes
t - interval 1 day
t + interval 1 month
t - interval 1 year
t + interval '1 02:03:04.5' day to second
a + interval 1 day
a - interval 1 week
a + interval 1 month
a - interval 13 months
a + interval 1 hour
a - interval 90 minutes
interval 1 day + a
interval 5 minutes + t
t - t2
a - a2
t - a
t - '2024-01-01'
t - t2 > interval 5 minutes
a - a2 < interval 1 day
(t - t2) + interval 1 day
interval 1 day + interval 1 hour
-(t - t2)
abs(t - t2)
interval 1 hour = interval 60 minutes
interval 5 minutes
coalesce(t - t2, interval 0 seconds)
to_date(t)
to_timestamp(a)
cast(t + interval 1 day as date)
date_trunc('hour', t) + interval 1 hour
timestampdiff(minute, t, t2)
timestampadd(hour, 1, t)
timestampdiff(month, t, t2)
timestampdiff(quarter, t, t2)
timestampdiff(year, t, t2)
timestampdiff(week, t, t2)
timestampdiff(day, a, t2)
timestampdiff(hour, t, t2)
timestampdiff(second, t, t2)
timestampdiff(microsecond, t, t2)
datediff(month, a, a2)
timestampadd(month, i, t)
timestampadd(year, 1, t)
timestampadd(day, i, t)
timestampadd(microsecond, i, t)
timestampadd(week, i, a)
dateadd(quarter, 1, a)

-- containers
struct(i, s)
struct(i as x, s as y)
named_struct('x', i, 'y', s)
named_struct('x', i / i2)
struct(i, s).s
st.x
st.Name
st.NAME
st.inner.deep
st.inner
st['x']
(i, s)
array(i, i2)
array(i, l)
array(s, 'x')
array(i, i / i2)
array(i)
size(ia)
cardinality(sa)
size(mp)
array_size(ia)
array_contains(ia, 1)
array_contains(ia, i)
array_contains(sa, 'a')
array_contains(sa, s)
element_at(ia, 1)
element_at(ia, -1)
element_at(ia, i)
element_at(sa, 2)
element_at(mp, 'a')
try_element_at(ia, 3)
try_element_at(ia, i)
ia[0]
ia[i]
ia[l]
sa[1]
mp['a']
mp[s]
mp.a
get(ia, 0)
get(ia, i)
get(sa, -1)
map('a', i, 'b', 1L)
map(1, s)
map('low', i, 'high', i + 1)['high']
map('a', named_struct('x', i))
map_keys(map('a', i))
map_keys(mp)
map_values(mp)
map_contains_key(mp, 'a')
map_contains_key(mp, s)
split(s, ',')[0]
split(s, ',')[1]
if(b, st, null)
st is null
ia is null
array(st, st)
size(split(s, 'a'))
struct(struct(i).i as j).j
struct(ia, mp)

-- casts
to_date(w)
to_timestamp(w)
date(w)
timestamp(w)
try_cast(w as timestamp)
try_cast(w as date)
try_cast(z as int)
try_cast(z as decimal(5,2))
try_cast(z as boolean)
try_cast(d as int)
try_cast(d as decimal(5,2))
try_cast(l as tinyint)
try_cast(q as bigint)
try_cast(a as timestamp)
d::int
bigint(z)
int(d)
string(l)
double(z)
float(z)
decimal(i)
decimal(l)
decimal(d)
boolean(z)
tinyint(i)
smallint(i)
binary(s)
cast(null as int)
cast(z as decimal(38,0))
cast(z as decimal(10,0))
cast(b as decimal(1,1))
cast(l as decimal(38,20))
cast(d as decimal(31,15))
cast(d as decimal(16,0))
cast(d as decimal(15,15))
cast(l / 1000 as decimal(18,3))
cast(m as decimal(4,1))
cast(o as decimal(10,2))
cast(p as decimal(38,0))
cast(p as decimal(10,4))
cast(q as decimal(38,2))
cast(q as decimal(38,38))
cast(m as decimal(38,38))
cast(o as decimal(3,0))
cast(cast(t as timestamp_ntz) as timestamp)
cast(cast(t as timestamp_ntz) as date)

-- evaluation
array(i, i2)[0]
array(i, 100 div i2)[0]
struct(i, 100 div i2 as j).i
struct(i, 100 div i2 as j).j
if(i / i2 > 1, l, l)
case when i / i2 > 1 then s when b then s else s end
case when i / i2 > 1 then s when b then 'x' else s end
lower(upper(s))
upper(lower(s))
(i div i2) + null
null + (i div i2)
(i div i2) = null
concat(cast(i div i2 as string), null)
(i div i2) is null
(i div i2) <=> null
greatest(null, i div i2)
(i div i2) in (null)
(i div i2) in (1, null)
substring(s, null, cast(i div i2 as int))
substring(s, cast(i div i2 as int), null)
size(array(i, i div i2))
element_at(array(i, i div i2), 1)
i / i2 > 1 and null
null and i / i2 > 1
i / i2 > 0 or true
i / i2 > 0 and false
(b or i / i2 > 1) and (b or i > 3)
(b and i / i2 > 1) or (b and i > 3)
i / i2 > 1 or not (i / i2 > 1)
cast(a as timestamp) > timestamp'2024-02-29 00:00:01'
a > timestamp'2024-02-29 00:00:01'
concat(concat(s, s2), i div i2)
concat(s, cast(i / i2 as int))
(i + 1) + i2
(i + 2147483647) + (-5)
(i2 + 5) + i
i * 2 * i2
(l + 9223372036854775807) + l2
(i + 1) + (i2 + 5)
i + 1 + l
(i + 1) * 2 * 3 + 5 + i2
y + 1Y + y2
y + 100Y + y2 + 20Y
i + 1 - 1 + 2
cast(d as bigint)
cast(d as int)
cast(f as bigint)
floor(d)
map_keys(mp)[0]
mp['a'] + 1 + i
if(null, 1, i)
i2 <> 0 and i / i2 > 1 and i / i2 < 5
b or (i / i2 > 1 and i / i2 < 5)
coalesce(i / i2, i / i2)
nvl2(i, i / i2, l / l2)
concat_ws(',', s, cast(i div i2 as string))
i in (i2, 100 div i)
s like 'a%' and cast(s as int) > 0
substring(s, 100 div i2)
substring(s2, 1, 100 div i2)
instr(s, cast(100 div i2 as string))
struct(s, 100 div i2)
i = 100 div i2
i <=> 100 div i2
(100 div i) = (100 div i2)
nanvl(d, 1 / d2)
locate('a', s, 100 div i2)
split_part(s, ',', 100 div i2)

-- formats and patterns
date_format(t, 'yyyy-MM-dd')
date_format(t, 'yyyy-MM-dd HH:mm:ss')
date_format(t, 'yyyyMMdd')
date_format(t, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
date_format(t, 'HH:mm')
date_format(t, 'ss.SSSSSS')
date_format(t, 'S SS SSSS')
date_format(a, 'yyyy/MM/dd HH')
date_format(w, 'yyyy')
date_format(t, '')
date_format(t, "''yyyy")
date_format(t, "'it''s' yyyy")
date_format(t, null)
date_format(t, 'yyyy年MM月')
regexp_extract(s, '([a-z]+)', 1)
regexp_extract(s, '(a)|(b)', 2)
regexp_extract(s, '(a)(.)?', 2)
regexp_extract(s, '[a-z]+', 0)
regexp_extract(s, '([^,]*),([^,]*)', 2)
regexp_extract(s, '^(.*?)b', 1)
regexp_extract(w, '(\\d{4})-(\\d{1,2})-(\\d{1,2})', 3)
regexp_extract(w, '^(\\d+)-(\\d+)')
regexp_extract(s, '(?i)(B.)')
regexp_extract(s, '(a+|ab)(c|bcd)?', 1)
regexp_extract(s, null, 1)
regexp_replace(s, 'a', 'Z')
regexp_replace(s, '[a-c]+', '')
regexp_replace(s, '(?i)x', '-')
regexp_replace(s, '\\s+', ' ')
regexp_replace(s, '[^a-zA-Z]', '_')
regexp_replace(w, '\\d', '#')
regexp_replace(s, 'aa|a', 'ß')
regexp_replace(s, 'a', null)
regexp_extract(s, '(a)(.)?(b)?', 3)
t || ''
concat(a, t)

-- transcendentals
exp(d)
exp(i)
exp(f)
ln(d)
ln(i)
log(d)
log(d, d2)
log(2, d)
log(i, l)
log10(d)
log10(l)
log2(d)
log2(m)
pow(d, d2)
power(i, i2)
pow(d, 2)
pow(d, 0.5)
pow(d, -1)
pow(l, 3)
degrees(d)
radians(d)
round(exp(f), 2)
