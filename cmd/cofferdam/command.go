package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// The groups of the help.
const (
	groupWork   = "work"
	groupReview = "review"
	groupHost   = "host"
)

// How long the daemon may take for an answer: usually, and where a sandbox is written or
// removed.
const (
	quickTimeout = 30 * time.Second
	longTimeout  = 5 * time.Minute
)

// usageError is bad input on the command line itself.
func usageError(cmd *cobra.Command, format string, args ...any) error {
	return fault.Invalid("%s (see %s --help)", fmt.Sprintf(format, args...), cmd.CommandPath())
}

// withQuickTimeout bounds what should be quick.
func withQuickTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, quickTimeout)
}

// interruptible ends its context when a person or the system wants this process to end.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
}

// interrupted ends its context by a signal. SIGPIPE is asked for so that a write
// to a closed pipe fails with a sentence instead of killing this process.
func interrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return interruptible(ctx)
}

// completion is cobra's signature of one.
type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// registerCompletion can fail only for a flag that is not there or has one already, and
// then every test of this package fails.
func registerCompletion(cmd *cobra.Command, flag string, f completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err)
	}
}

// incomplete says of flags that nothing can be offered for them, not even files.
func incomplete(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		registerCompletion(cmd, flag, cobra.NoFileCompletions)
	}
}

// completeWords completes words that are known.
func completeWords(words ...string) completion {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// completeFiles completes files with these extensions.
func completeFiles(extensions ...string) completion {
	return cobra.FixedCompletions(extensions, cobra.ShellCompDirectiveFilterFileExt)
}

// completeFirst completes the first argument only.
func completeFirst(f completion) completion {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(cmd, args, word)
	}
}

// anyFile leaves completion to the shell.
func anyFile(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}
