# Whole models beside llama.cpp (tools/rivals.sh): how many times its tokens per second, by test and model.
subtitle = 'Tokens per second as a multiple of llama.cpp''s, both waiting for each token; pp: prompt, tg: writing, @d: after so many tokens'
load common.'style.gp'
list = ''
do for [f=1:files] { stats file(f) using (add(strcol('test'))) nooutput }
tests = list
list = ''
do for [f=1:files] { stats file(f) using (add(strcol('model'))) nooutput }
score(k) = strcol('model') eq item(list, k) && strlen(strcol('ratio')) ? column('ratio') : NaN
name_of(text) = text
tic_of(i) = item(tests, i)
test_column = 'test'
above_text = 'times as fast as llama.cpp'
seen = reach(1)
load common.'tests.gp'
