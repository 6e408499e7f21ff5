/* cmd_run: `assay run`, text from a model: the text goes to stdout as it is generated, the timings to stderr; and
 * `assay tokenize`. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "open_model.h"
#include "runner/generate/chat.h"
#include "runner/generate/generate.h"
#include "runner/model/model.h"
#include "runner/model/nonfinite.h"
#include "runner/tokenizer/tokenizer.h"
#include "verb.h"

/* All of standard input, or of a file or pipe (path), any bytes, at most `most`; more are an error. NUL-terminated after
 * them; the caller frees the text. */
static char *read_input(const char *path, size_t most, size_t *bytes, err *e) {
    os_text t = {.text = NULL};
    const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    const char *name = path ? path : "standard input";
    ssize_t n = fd < 0 ? -1 : 1;
    while (n > 0 && t.used <= most)
        n = os_read_more(fd, &t);
    *bytes = t.used;
    if (n < 0)
        err_set(e, path ? EXIT_USAGE : EXIT_CANNOT, "cannot read %.160s: %s", name,
                strerror(errno));
    else if (t.used > most)
        err_set(e, EXIT_USAGE, "%.160s is longer than %zu bytes; give it in parts", name, most);
    if (path && fd >= 0)
        close(fd);
    if (n >= 0 && t.used <= most)
        return t.text;
    free(t.text);
    return NULL;
}

static struct {
    const char *model, *prompt, *file, *device, *kv, *system, *save_state, *load_state;
    uint64_t tokens, context, in_flight, threads;
    sampler_settings sampling;
    bool chat, echo, no_echo, ids, special, no_scan, trace, long_context;
} settings = {.tokens = 128, .in_flight = 2, .sampling = SAMPLER_DEFAULTS};

static const option options[] = {
    MODEL_OPTION(&settings.model),
    ANY_TEXT_OPTION("p|prompt", &settings.prompt, "TEXT", "text to continue; - reads stdin"),
    TEXT_OPTION("f|file", &settings.file, "FILE",
                "read the prompt from this file, less its last newline"),
    {"n|tokens", OPTION_NUMBER, &settings.tokens, "N",
     "maximum number of tokens to generate (default 128)", 0, UINT32_MAX},
    {"c|context", OPTION_NUMBER, &settings.context, "N",
     "context length (default: what is needed, at most the model's)", 1, UINT32_MAX},
    FLAG_OPTION("long-context", &settings.long_context,
                "allow more than the model was trained for"),
    {"temp", OPTION_REAL, &settings.sampling.temperature, "T",
     "sampling temperature; 0 is greedy (default 0)", 0, 100},
    {"top-k", OPTION_NUMBER, &settings.sampling.top_k, "K",
     "sample from the K likeliest; 0 is all (default 40)", 0, UINT32_MAX},
    {"top-p", OPTION_REAL, &settings.sampling.top_p, "P",
     "sample from the likeliest with total probability P; 1 is all (default 0.95)", 0, 1},
    {"min-p", OPTION_REAL, &settings.sampling.min_p, "P",
     "drop tokens less than P times as likely as the best (default 0.05)", 0, 1},
    {"repeat-penalty", OPTION_REAL, &settings.sampling.repeat_penalty, "F",
     "divide logits of recent tokens by F; 1 is off (default 1)", 0, 100},
    {"repeat-last-n", OPTION_NUMBER, &settings.sampling.repeat_last, "N",
     "number of recent tokens penalised (default 64)", 0, 1u << 20},
    SEED_OPTION(&settings.sampling.seed, "the sampling"),
    FLAG_OPTION("chat", &settings.chat, "treat the prompt as a message to an assistant"),
    ANY_TEXT_OPTION("system", &settings.system, "TEXT", "system message, with --chat"),
    FLAG_OPTION("echo", &settings.echo, "print the prompt too, not only on a terminal"),
    FLAG_OPTION("no-echo", &settings.no_echo, "do not print the prompt"),
    FLAG_OPTION("ids", &settings.ids, "print token ids instead of text"),
    FLAG_OPTION("special", &settings.special, "print control tokens too"),
    TEXT_OPTION("save-state", &settings.save_state, "FILE",
                "save the state of the model after the text, to continue from later"),
    TEXT_OPTION("load-state", &settings.load_state, "FILE",
                "continue from a state that was saved with the same model; needs no prompt"),
    {"in-flight", OPTION_NUMBER, &settings.in_flight, "N",
     "greedy steps submitted ahead, with --temp 0 (default 2)", 1, MODEL_IN_FLIGHT},
    FLAG_OPTION("no-scan", &settings.no_scan, "do not look for NaN in the weights first"),
    FLAG_OPTION("trace-nan", &settings.trace,
                "first look for NaN after every launch of the prompt"),
    KV_OPTION(&settings.kv),
    DEVICE_OPTION(&settings.device),
    THREADS_OPTION(&settings.threads),
    PLAIN_OPTION("no-display-prompt", OPTION_FLAG, &settings.no_echo, NULL, NULL),
    {"n-predict", OPTION_NUMBER, &settings.tokens, "N", NULL, 0, UINT32_MAX},
    {"ctx-size", OPTION_NUMBER, &settings.context, "N", NULL, 1, UINT32_MAX},
    FOREIGN_OPTION("cnv|conversation|no-cnv|no-conversation|i|interactive",
                   "switches llama.cpp's conversation; here --chat sends one message, and the next "
                   "one follows with --save-state and --load-state"),
    LLAMA_CPP_OPTIONS,
};

/* --- stopping --- */

static void ask_to_stop(int signal_number) {
    os_stop_signal = signal_number;
}

/* The first signal ends the text after the current token, the second the process. */
static void catch_signals(void) {
    struct sigaction action = {.sa_handler = ask_to_stop, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static bool goes_on(void *context) {
    (void)context;
    return !os_stop_signal;
}

/* --- the text --- */

/* held: bytes of an incomplete character, not printed yet. */
typedef struct {
    const tokenizer *tokenizer;
    char held[8];
    size_t held_bytes;
    size_t printed; /* tokens */
    uint32_t token; /* the last of them */
    char last;
} stream;

static void print_bytes(stream *s, const char *bytes, size_t count) {
    if (count == 0)
        return;
    fwrite(bytes, 1, count, stdout);
    s->last = bytes[count - 1];
}

static void print_piece(stream *s, gguf_text piece) {
    size_t bytes = s->held_bytes + piece.bytes;
    char *text = malloc(bytes + 1);
    if (!text)
        return;
    memcpy(text, s->held, s->held_bytes);
    if (piece.bytes)
        memcpy(text + s->held_bytes, piece.data, piece.bytes);
    size_t partial = tokenizer_count_partial(text, bytes);
    print_bytes(s, text, bytes - partial);
    memcpy(s->held, text + bytes - partial, partial);
    s->held_bytes = partial;
    free(text);
}

static bool emit(void *context, uint32_t token) {
    stream *s = context;
    if (settings.ids)
        printf("%s%" PRIu32, s->printed ? " " : "", token);
    else
        print_piece(s, tokenizer_get_piece(s->tokenizer, token, settings.special));
    s->printed++;
    s->token = token;
    fflush(stdout);
    return !os_stop_signal && !ferror(stdout);
}

static void end_text(stream *s) {
    print_bytes(s, s->held, s->held_bytes);
    if (s->last != '\n')
        putchar('\n');
    fflush(stdout);
}

/* --- the prompt --- */

/* What the user wrote; the caller frees it. */
static char *read_prompt(size_t *bytes, err *e) {
    if (settings.file) {
        char *text = read_input(settings.file, TOKENIZER_TEXT_MAX, bytes, e);
        *bytes -= text && *bytes > 0 && text[*bytes - 1] == '\n';
        return text;
    }
    if (settings.prompt && strcmp(settings.prompt, "-") == 0)
        return read_input(NULL, TOKENIZER_TEXT_MAX, bytes, e);
    const char *given = settings.prompt ? settings.prompt : "";
    *bytes = strlen(given);
    return memcpy(array_new(1, *bytes + 1), given, *bytes);
}

/* The text that the model sees; the caller frees it. */
static char *get_prompt(const gguf *g, size_t *bytes, err *e) {
    char *text = read_prompt(bytes, e), *rendered = NULL;
    if (!text || !settings.chat || (settings.load_state && *bytes == 0))
        return text;
    chat_turn turn = {.system = settings.system,
                      .user = text,
                      .user_bytes = *bytes,
                      .is_later = settings.load_state != NULL};
    chat_render(g, &turn, &rendered, bytes, e);
    free(text);
    return rendered;
}

/* What a state continues had its BOS already. */
static bool tokenize_prompt(const open_model *s, const tokenizer *t, token_list *out, err *e) {
    size_t bytes;
    char *text = get_prompt(s->file, &bytes, e);
    if (!text)
        return false;
    unsigned special = settings.load_state ? TOKENIZE_PLAIN : TOKENIZE_ADD_SPECIAL;
    tokenizer_encode(t, text, bytes, special | TOKENIZE_PARSE_SPECIAL, out);
    free(text);
    if (out->count == 0 && !settings.load_state)
        return err_set(e, EXIT_USAGE, "the prompt is empty: give it some text to continue");
    return true;
}

/* --- all together --- */

static uint32_t choose_context(const model_shape *s, size_t prompt) {
    if (settings.context)
        return (uint32_t)settings.context;
    if (settings.load_state) /* which may hold any number of tokens */
        return s->context;
    uint64_t needed = prompt + settings.tokens;
    return needed < s->context ? (uint32_t)needed : s->context;
}

static bool check_context(const model_shape *s, err *e) {
    return s->context == 0 || settings.context <= s->context || settings.long_context ||
           err_set(e, EXIT_USAGE,
                   "-c %" PRIu64 " is more than the %u tokens the model was trained for; "
                   "--long-context allows it",
                   settings.context, s->context);
}

static double get_rate(size_t count, uint64_t ns) {
    return ns > 0 ? (double)count * 1e9 / (double)ns : 0;
}

static void print_report(const open_model *s, uint64_t load_ns, const generate_report *r) {
    char title[160];
    const device_facts *facts = device_get_facts(s->device);
    open_model_get_title(s, title, sizeof title);
    fprintf(stderr, "\nload     %8.2f s   %s, %.1f MB, on %s%s\n", (double)load_ns / 1e9, title,
            (double)s->file->bytes / 1e6, facts->name, facts->emulated ? " (emulated)" : "");
    model_memory memory = model_get_memory(s->model);
    fprintf(stderr, "memory   %8.1f MB  %.1f weights, %.1f state, %.1f scratch\n",
            (double)(memory.weights + memory.state + memory.scratch) / 1e6,
            (double)memory.weights / 1e6, (double)memory.state / 1e6, (double)memory.scratch / 1e6);
    fprintf(stderr, "prefill  %8.2f s   %zu token%s, %.2f tok/s\n", (double)r->prefill_ns / 1e9,
            r->prompt_tokens, r->prompt_tokens == 1 ? "" : "s",
            get_rate(r->prompt_tokens, r->prefill_ns));
    fprintf(stderr, "decode   %8.2f s   %zu token%s, %.2f tok/s; %s\n", (double)r->decode_ns / 1e9,
            r->decoded, r->decoded == 1 ? "" : "s", get_rate(r->decoded, r->decode_ns),
            end_reason_get_text(r->end));
}

/* Stops at the first launch of the prompt that writes NaN or infinity, even if no logit shows
 * it. */
static bool trace_prompt(model *m, const token_list *prompt, err *e) {
    nonfinite n;
    char where[220];
    if (!settings.trace)
        return true;
    if (!model_trace(m, prompt->items, prompt->count, &n, e))
        return false;
    model_rewind(m, 0);
    if (!n.found)
        return true;
    nonfinite_print(&n, where, sizeof where);
    return err_set(e, EXIT_WRONG, "%s", where);
}

/* Loads the state. Its pending token comes before the prompt. */
static bool load_state(model *m, token_list *prompt, size_t *pending, err *e) {
    uint32_t token;
    *pending = 0;
    if (!settings.load_state)
        return true;
    if (!model_read_state(m, settings.load_state, &token, e))
        return false;
    if (token != MODEL_NO_TOKEN) {
        token_list_add(prompt, token);
        memmove(prompt->items + 1, prompt->items, (prompt->count - 1) * sizeof *prompt->items);
        prompt->items[0] = token;
        *pending = 1;
    }
    return prompt->count > 0 ||
           err_set(e, EXIT_USAGE,
                   "the text in %.120s has ended: continue it with a prompt, -p TEXT",
                   settings.load_state);
}

/* A text that ended where its last token was chosen has that token pending. */
static bool save_state(model *m, const stream *out, const token_list *prompt, size_t start,
                       const generate_report *r, err *e) {
    if (!settings.save_state)
        return true;
    size_t seen = model_get_position(m) - start;
    uint32_t pending = seen == prompt->count + r->tokens ? MODEL_NO_TOKEN
                       : r->tokens > 0                   ? out->token
                                                         : prompt->items[prompt->count - 1];
    return model_write_state(m, settings.save_state, pending, e);
}

/* A step that is dropped at the end would have a recurrent state replay the text to be saved. */
static uint32_t choose_in_flight(const model_shape *s) {
    return settings.save_state && s->context == 0 ? 1 : (uint32_t)settings.in_flight;
}

/* As llama.cpp does, but in a pipe only what the model has written. */
static bool has_echo(void) {
    bool is_plain = !settings.chat && !settings.ids && !settings.no_echo;
    return settings.echo || (is_plain && isatty(STDOUT_FILENO) == 1);
}

static bool generate_text(open_model *s, const tokenizer *t, token_list *prompt, uint64_t start_ns,
                          bool *is_clean, err *e) {
    stream out = {.tokenizer = t};
    generate_report report = {.end = END_COUNT};
    generate_options how = {.max_tokens = (size_t)settings.tokens,
                            .in_flight = choose_in_flight(model_get_shape(s->model)),
                            .tokenizer = t,
                            .emit = emit,
                            .context = &out};
    sampler *chooser = sampler_new(&settings.sampling, model_get_shape(s->model)->vocab);
    size_t pending;
    bool ok = load_state(s->model, prompt, &pending, e) &&
              model_prepare(s->model, model_get_position(s->model), prompt->count,
                            (size_t)settings.tokens, sampler_is_plain_greedy(chooser), e);
    model_set_watch(s->model, goes_on, NULL);
    open_model_end_compiling(s);
    ok = ok && trace_prompt(s->model, prompt, e);
    uint64_t load_ns = os_now_ns() - start_ns;
    for (size_t i = pending; ok && has_echo() && i < prompt->count; i++)
        emit(&out, prompt->items[i]);
    size_t start = model_get_position(s->model);
    /* To be continued without more text, the last token of a prompt must be left to feed. */
    size_t fed = prompt->count - (ok && settings.save_state && settings.tokens == 0);
    ok = ok && (fed == 0 || generate(s->model, chooser, prompt->items, fed, &how, &report, e));
    if (out.printed > 0 || ok)
        end_text(&out);
    ok = ok && save_state(s->model, &out, prompt, start, &report, e);
    if (ok)
        print_report(s, load_ns, &report);
    *is_clean = open_model_print_findings(s, stderr);
    sampler_free(chooser);
    return ok;
}

static bool check_settings(err *e) {
    const struct {
        bool is_made;
        const char *what;
    } mistakes[] = {
        {!settings.prompt && !settings.file && !settings.load_state,
         "run needs a prompt: -p TEXT, -f FILE, or -p - to read it from standard input"},
        {settings.prompt && settings.file,
         "--prompt and --file are both a prompt: give one of them"},
        {settings.echo && settings.no_echo, "--echo and --no-echo contradict each other"},
        {settings.system && !settings.chat, "--system needs --chat"},
        {settings.system && settings.load_state,
         "--system is for the start of a chat: it cannot go with --load-state"},
        {settings.load_state && settings.trace,
         "--trace-nan looks at a prompt from its start: it cannot go with --load-state"},
        {settings.sampling.repeat_penalty == 0,
         "--repeat-penalty must be above 0 (1 turns it off)"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        if (mistakes[i].is_made)
            return err_set(e, EXIT_USAGE, "%s", mistakes[i].what);
    static const char *const samplings[] = {"top-k", "top-p", "min-p", "seed"};
    for (size_t i = 0; i < sizeof samplings / sizeof *samplings; i++)
        if (settings.sampling.temperature == 0 && options_is_given(samplings[i]))
            verb_say("--%s changes nothing at temperature 0, which takes the likeliest token: give "
                     "--temp too",
                     samplings[i]);
    return (!settings.save_state || os_check_writable(settings.save_state, e)) &&
           open_model_set_threads(settings.threads, e);
}

static exit_code run_verb(err *e) {
    open_model s;
    token_list prompt = {0};
    model_shape made_for;
    tokenizer *t = NULL;
    bool is_clean = true; /* as far as the device's validation looked */
    uint64_t start_ns = os_now_ns();
    if (!check_settings(e))
        return e->code;
    catch_signals();
    bool ok = open_model_file(&s, settings.model, e) && model_read_shape(s.file, &made_for, e) &&
              check_context(&made_for, e) && (t = tokenizer_new(s.file, e)) &&
              tokenize_prompt(&s, t, &prompt, e) && (settings.no_scan || nonfinite_scan(s.file, e));
    if (ok) {
        s.goes_on = goes_on;
        model_options how = {.context = choose_context(&made_for, prompt.count)};
        ok = open_model_find_cache(settings.kv, &how.cache, e) &&
             open_model_on(&s, settings.device, &how, e) &&
             generate_text(&s, t, &prompt, start_ns, &is_clean, e);
        if (!ok)
            device_tell_loss(s.device, e);
    }
    token_list_free(&prompt);
    tokenizer_free(t);
    open_model_close(&s);
    if (!ok && os_stop_signal)
        err_set(e, EXIT_INTERRUPTED, "stopped by a signal"); /* whatever it broke off */
    if (!ok)
        return e->code;
    return !is_clean ? EXIT_WRONG : os_stop_signal ? EXIT_INTERRUPTED : EXIT_OK;
}

VERB_ALONE(
    verb_run, "run", run_verb, .about = "generate text with a model, and report tokens per second",
    .notes =
        "The text goes to stdout as it is generated, the timings to stderr. On a terminal the\n"
        "prompt comes first, except with --chat and --ids; in a pipe only with --echo. At\n"
        "temperature 0 (the default) output is deterministic; above 0, --seed decides. Without -m\n"
        "the small model that comes with the project is used; `make model` gets a larger one.\n"
        "Ctrl-C ends the text.\n",
    VERB_OPTIONS(options), .math = "fast", .reads_tuned = true);

/* tokenize: text to token ids with the vocabulary of a model file, and back ---------------------- */

static struct {
    const char *model;
    bool special, bos, exact, detokenize;
} tokenize_settings;

static const option tokenize_option_list[] = {
    TEXT_OPTION("m|model", &tokenize_settings.model, "FILE",
                "GGUF file with the vocabulary (default: the model that comes with Assay)"),
    FLAG_OPTION("special", &tokenize_settings.special, "parse control tokens such as <|im_end|>"),
    FLAG_OPTION("bos", &tokenize_settings.bos,
                "add BOS and EOS where the file asks (default: none)"),
    FLAG_OPTION("exact", &tokenize_settings.exact,
                "keep bytes that are not UTF-8 (default: replaced by U+FFFD, as in llama.cpp)"),
    FLAG_OPTION("detokenize", &tokenize_settings.detokenize,
                "ids to bytes; control tokens are left out unless --special is given"),
};

/* --- input --- */

static bool read_text(const tokenizer *t, const char *name, token_list *ids, err *e) {
    size_t bytes = strlen(name);
    char *input = NULL;
    if (strcmp(name, "-") == 0 && !(input = read_input(NULL, TOKENIZER_TEXT_MAX, &bytes, e)))
        return false;
    unsigned flags = (tokenize_settings.special ? TOKENIZE_PARSE_SPECIAL : 0) |
                     (tokenize_settings.bos ? TOKENIZE_ADD_SPECIAL : 0) |
                     (tokenize_settings.exact ? TOKENIZE_EXACT : 0);
    tokenizer_encode(t, input ? input : name, bytes, flags, ids);
    free(input);
    return true;
}

static bool read_ids(const tokenizer *t, const char *text, size_t bytes, token_list *ids, err *e) {
    static const char separators[] = " ,\t\r\n";
    size_t length;
    for (const char *p = text + strspn(text, separators); p < text + bytes;
         p += length, p += strspn(p, separators)) {
        length = strcspn(p, separators);
        const int shown = length < 40 ? (int)length : 40;
        if (length == 0 || strspn(p, "0123456789") < length)
            return err_set(e, EXIT_USAGE, "'%.*s' is not a token id; ids are whole numbers", shown,
                           p);
        const unsigned long long id = strtoull(p, NULL, 10); /* the largest if it is larger */
        if (id >= tokenizer_get_count(t))
            return err_set(e, EXIT_USAGE, "there is no token %.*s; the largest id is %zu", shown, p,
                           tokenizer_get_count(t) - 1);
        token_list_add(ids, (uint32_t)id);
    }
    return true;
}

static bool read_all_ids(const tokenizer *t, const char *const *names, size_t count,
                         token_list *ids, err *e) {
    if (count == 1 && strcmp(names[0], "-") == 0) {
        size_t bytes;
        char *input = read_input(NULL, SIZE_MAX / 4, &bytes, e);
        bool ok = input && read_ids(t, input, bytes, ids, e);
        free(input);
        return ok;
    }
    for (size_t i = 0; i < count; i++)
        if (!read_ids(t, names[i], strlen(names[i]), ids, e))
            return false;
    return true;
}

/* --- output --- */

static void print_ids(const token_list *ids) {
    for (size_t i = 0; i < ids->count; i++)
        printf("%s%" PRIu32, i ? " " : "", ids->items[i]);
    putchar('\n');
}

static void print_token_bytes(const tokenizer *t, const token_list *ids) {
    for (size_t i = 0; i < ids->count; i++) {
        gguf_text piece = tokenizer_get_piece(t, ids->items[i], tokenize_settings.special);
        fwrite(piece.data, 1, piece.bytes, stdout);
    }
}

static bool tokenize(const tokenizer *t, const char *const *names, size_t count, err *e) {
    token_list ids = {0};
    bool ok = tokenize_settings.detokenize ? read_all_ids(t, names, count, &ids, e)
                                           : read_text(t, names[0], &ids, e);
    if (ok && tokenize_settings.detokenize)
        print_token_bytes(t, &ids);
    else if (ok)
        print_ids(&ids);
    token_list_free(&ids);
    return ok;
}

static exit_code run_tokenize(const char *const *names, size_t count, err *e) {
    char path[PATH_MAX];
    if (count == 0)
        err_set(e, EXIT_USAGE,
                "give a text (or ids with --detokenize), or - to read it from stdin");
    else if (count > 1 && !tokenize_settings.detokenize)
        err_set(e, EXIT_USAGE, "expected one argument, got %zu: put the text in quotes", count);
    if (e->code || !model_file_find(tokenize_settings.model, path, sizeof path, e))
        return e->code;
    gguf *g = gguf_open(path, e);
    tokenizer *t = g ? tokenizer_new(g, e) : NULL;
    bool ok = t && tokenize(t, names, count, e);
    tokenizer_free(t);
    gguf_free(g);
    return ok ? EXIT_OK : e->code;
}

VERB(verb_tokenize, "tokenize", run_tokenize, .names = "TEXT|-|IDS...",
     .about = "convert text to token ids, and back",
     .notes =
         "The ids are those of llama.cpp, by default of `llama-tokenize --ids --no-bos\n"
         "--no-parse-special`. UTF-8 text survives the round trip byte for byte if the vocabulary\n"
         "has all 256 bytes (bytes it lacks are dropped). Bytes that are not UTF-8 become U+FFFD;\n"
         "with --exact they survive too.\n",
     VERB_OPTIONS(tokenize_option_list));
