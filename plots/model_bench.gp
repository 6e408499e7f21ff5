# Whole models by `assay model bench`: tokens per second of prompts (pp) and of writing (tg), by model.
subtitle = 'pp: a prompt of so many tokens, tg: so many tokens written, @d: after so many tokens; GPU clock'
load common.'style.gp'
list = ''
do for [f=1:files] { stats file(f) using (add(strcol('variant'))) nooutput }
tests = list
list = ''
# The case of a test with keys and values in another type is '.../Q4_0-kv-f16/tg32'.
after(text, what) = strstrt(text, what) ? substr(text, strstrt(text, what) + strlen(what), strlen(text)) : ''
upto(text, what) = strstrt(text, what) ? substr(text, 1, strstrt(text, what) - 1) : text
cache_of(text) = text eq '' ? '' : ', KV '.upto(text, '/')
series(x) = strcol('model').', '.strcol('format').cache_of(after(strcol('case'), '-kv-'))
do for [f=1:files] { stats file(f) using (add(series(0))) nooutput }
# 'random weights in the shape of 7b, seed 1' is 7b.
prefix = 'random weights in the shape of '
if (strstrt(list, prefix)) { set label 998 subtitle.'; random weights' }
name_of(text) = strstrt(text, prefix) == 1 ? substr(text, strlen(prefix) + 1, strlen(text)) : text
# 'tg32@d512' has 32 tokens.
end_of(test) = strstrt(test, '@') ? strstrt(test, '@') - 1 : strlen(test)
tokens(test) = substr(test, 3, end_of(test)) + 0
# Beside a test of the same tokens only the depth: there is no room for more.
is_deeper(i) = i > 1 && end_of(item(tests, i)) < strlen(item(tests, i)) && \
    tokens(item(tests, i)) == tokens(item(tests, i - 1))
tic_of(i) = is_deeper(i) ? substr(item(tests, i), end_of(item(tests, i)) + 1, 99) : item(tests, i)
score(k) = series(0) eq item(list, k) && column('n') > 0 ? 1e9 * tokens(strcol('variant')) / column('gpu_ns') : NaN
test_column = 'variant'
above_text = 'tokens per second'
load common.'tests.gp'
