package ui

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// CanAsk reports whether somebody is there to be asked.
func CanAsk() bool {
	return IsTerminal(os.Stdin) && IsTerminal(os.Stderr)
}

// Agrees asks a person at the terminal; anything but yes is no. Where a signal is caught that would end
// the program, ask with AgreesWithin.
func Agrees(question string) bool { return AgreesWithin(context.Background(), question) }

// AgreesWithin is Agrees for as long as a context goes on: its end is no. Nothing else may read standard
// input after that, for a read of it is still under way.
func AgreesWithin(ctx context.Context, question string) bool {
	_, _ = fmt.Fprintf(os.Stderr, "cofferdam: %s [y/N] ", question)
	answers := make(chan string, 1)
	safego.Go(func() {
		defer close(answers)
		answer, _ := bufio.NewReader(os.Stdin).ReadString('\n') // an end of input is no
		answers <- strings.ToLower(strings.TrimSpace(answer))
	})
	select {
	case answer := <-answers:
		return ctx.Err() == nil && (answer == "y" || answer == "yes")
	case <-ctx.Done():
		_, _ = fmt.Fprintln(os.Stderr) // what is told next has a line of its own
		return false
	}
}
