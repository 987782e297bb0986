package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// maxCallCode bounds what `call` reads, as the daemon does.
const maxCallCode = 1 << 20

// callFlags are those of `call`.
type callFlags struct {
	policy, named  string
	language, code string
	run, task      string
	timeout        time.Duration
	memory         int64
	json           bool
}

func newCall() *cobra.Command {
	var flags callFlags
	cmd := &cobra.Command{
		Use:     "call [flags] [FILE | -]",
		Short:   "Run one piece of code without a sandbox",
		GroupID: groupWork,
		Long: `Runs JavaScript by itself: no sandbox is made, and the code has no files, no network,
no processes and no packages. The policy's rules judge it (field code) before it runs,
timeout_seconds and max_memory_mb bound it, and it is on record. Tools of the host that
the policy lists are there as callTool(NAME, {...}).

What the code writes with console.log goes to stdout, with console.error to stderr; then
the value of its last expression follows as JSON, unless it is undefined. Code may await.
There are no timers, and nothing can be imported.

The wall is that of WebAssembly, in the daemon's own process. A policy that asks for
another isolation refuses the call; "isolation: wasm" asks for this one.

It exits with 0, with 1 if the code failed, 2 for bad input, 124 if its time was over,
125 if Cofferdam itself failed, and 126 if the policy refuses it.`,
		Example: `  cofferdam call -e '[1, 2, 3].map((n) => n ** 2)'
  cofferdam call --policy policy.yaml score.js
  echo 'await callTool("lookup_order", {id: "7"})' | cofferdam call --policy policy.yaml -
  cofferdam call --json --timeout 2s --memory 16 -e 'let s = 0; for (let i = 0; i < 1e6; i++) s += i; s'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			code, err := flags.readSource(cmd, args)
			if err != nil {
				return err
			}
			return flags.makeCall(cmd.Context(), code)
		},
		ValidArgsFunction: completeFirst(completeFiles("js", "mjs")),
	}
	set := cmd.Flags()
	set.StringVarP(&flags.code, "eval", "e", "", "the code itself, in the place of a file")
	set.StringVar(&flags.language, "language", "", "what the code is written in (default: javascript)")
	set.StringVarP(&flags.policy, "policy", "p", "", "policy document (default: a built-in one)")
	set.StringVar(&flags.named, "named-policy", "", "policy that the daemon keeps under this name")
	set.StringVar(&flags.run, "run-id", "", "id of the run (default: one is made)")
	set.StringVar(&flags.task, "task", "", "what the code is for, for the record")
	spanVar(set, &flags.timeout, "timeout", "for how long it may compute, such as 500ms or 30s (default: the policy's, or 10s)")
	set.Int64Var(&flags.memory, "memory", 0, "how many MiB it may have (default: the policy's, or 64)")
	set.BoolVar(&flags.json, "json", false, "write all of the answer as JSON")
	refuseRepeated(set, "policy", "named-policy", "run-id")
	registerCompletion(cmd, "language", completeWords("javascript"))
	registerCompletion(cmd, "policy", completePolicyFile)
	registerCompletion(cmd, "named-policy", completePolicies)
	incomplete(cmd, "eval", "run-id", "task", "timeout", "memory")
	return cmd
}

// readSource reads the code from where the command line says.
func (f callFlags) readSource(cmd *cobra.Command, args []string) (string, error) {
	inline := cmd.Flags().Changed("eval")
	switch {
	case inline && len(args) > 0 || !inline && len(args) == 0:
		return "", usageError(cmd, "give the code once: with -e, as a file, or as - on stdin")
	case f.policy != "" && f.named != "":
		return "", usageError(cmd, "--policy and --named-policy both name a policy; give one")
	case f.timeout < 0 || f.memory < 0:
		return "", usageError(cmd, "--timeout and --memory must be above 0")
	}
	code := []byte(f.code)
	var err error
	switch {
	case inline:
	case args[0] == "-":
		if code, err = io.ReadAll(io.LimitReader(os.Stdin, maxCallCode+1)); err != nil {
			return "", fmt.Errorf("read the code from stdin: %w", err)
		}
	default:
		if code, err = readDocument("file of code", args[0], maxCallCode); err != nil {
			if _, none := kindNamed(args[0]); errors.Is(none, fs.ErrNotExist) || errors.Is(none, syscall.ENAMETOOLONG) {
				err = fmt.Errorf("%w; code itself is given with -e", err)
			}
			return "", err
		}
	}
	if len(code) > maxCallCode {
		return "", fault.Invalid("the code has more than %d bytes", maxCallCode)
	}
	if !utf8.Valid(code) {
		return "", fault.Invalid("the code is not UTF-8")
	}
	return string(code), nil
}

// makeCall asks the daemon for the call, and tells what became of it.
func (f callFlags) makeCall(ctx context.Context, code string) error {
	asked := api.Call{
		Run: f.run, Task: f.task, Language: f.language, Code: code, Policy: api.Policy{Name: f.named},
		TimeoutMS: wholeMilliseconds(f.timeout), MemoryMB: f.memory,
	}
	if f.policy != "" {
		var err error
		if asked.Policy, _, err = readPolicy(f.policy, nil); err != nil {
			return err
		}
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	c, err := connectDaemon(ctx)
	if err != nil {
		return &exitError{code: exitOurs, err: err}
	}
	result, err := client.Call(ctx, c, asked)
	switch status := client.StatusOf(err); {
	case err == nil:
		return f.printResult(result)
	case status == http.StatusForbidden:
		return &exitError{code: exitRefused, err: err}
	case status >= http.StatusBadRequest && status < http.StatusInternalServerError:
		return err
	}
	return &exitError{code: exitOurs, err: err}
}

// printResult writes what the code wrote and came to, and has this program end as it did.
func (f callFlags) printResult(r api.CallResult) error {
	if f.json {
		if err := ui.WriteJSON(os.Stdout, r); err != nil {
			return err
		}
		return f.judgeResult(r, true)
	}
	stdout, stderr := r.Stdout, r.Stderr
	if ui.IsTerminal(os.Stdout) {
		stdout = ui.PrintableText(stdout)
	}
	if ui.IsTerminal(os.Stderr) {
		stderr = ui.PrintableText(stderr)
	}
	if len(r.Value) > 0 {
		stdout += ui.Printable(string(r.Value)) + "\n"
	}
	_, err := io.WriteString(os.Stderr, stderr)
	_, other := io.WriteString(os.Stdout, stdout)
	if err := errors.Join(err, other); err != nil {
		return fmt.Errorf("write what the code wrote: %w", err)
	}
	if r.Truncated {
		fmt.Fprintln(os.Stderr, "cofferdam: the code wrote more than it may; the rest is gone")
	}
	return f.judgeResult(r, false)
}

// judgeResult tells how a call ended, as an error.
func (callFlags) judgeResult(r api.CallResult, told bool) error {
	if r.Failure == nil {
		return nil
	}
	code := exitFailure
	if r.Failure.Kind == "time" {
		code = exitTimeout
	}
	if told {
		return &exitError{code: code}
	}
	says := ui.Printable(cmp.Or(r.Failure.Message, "it does not say why"))
	if r.Failure.Stack != "" {
		says += "\n" + ui.PrintableText(r.Failure.Stack)
	}
	return &exitError{code: code, err: fmt.Errorf("the code failed (%s): %s", ui.Printable(r.Failure.Kind), says)}
}
