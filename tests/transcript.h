/* transcript: suites of commands as text, tests/transcripts/SUITE.txt. In it
 *
 *   == a sentence @soft        begins a test, which its tags limit: @soft, @emulated, @gpu, @not-mac
 *   $ command                  a shell line as of command_run; lines that begin with two blanks go on with it
 *   ? 2                        its exit status, if that is not 0
 *   : text                     in its output; \n in it is the end of a line
 *   ! text                     not in its output
 *   ^ text                     what its output begins with
 *   | text                     all of its output
 *   * 3 text                   in its output three times
 *   ~ keep                     its output is remembered; ~ same: it is that again; ~ other: it is not
 *   % command                  the rest is skipped unless this shell line succeeds
 *
 * What precedes the first test (functions, say) precedes each command. A # begins a comment. */
#ifndef ASSAY_TESTS_TRANSCRIPT_H
#define ASSAY_TESTS_TRANSCRIPT_H

/* Runs the tests of a suite. */
void transcript_run(const char *suite);

#endif
