package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/term"
)

// moment is how long something may take before a person wonders.
const moment = time.Second

// patiently does something, and where it takes more than a moment and somebody
// sits at a terminal, tells on stderr what is being done and for how long.
func patiently(what string, do func() error) error {
	if !term.IsTerminal(descriptor(os.Stderr)) {
		return do()
	}
	done, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		timer := time.NewTimer(moment)
		defer timer.Stop()
		select {
		case <-done:
			return
		case <-timer.C:
		}
		began := time.Now().Add(-moment)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			_, _ = fmt.Fprintf(os.Stderr, "\r\x1b[K%s (%s)", what, time.Since(began).Round(time.Second))
			select {
			case <-done:
				_, _ = fmt.Fprint(os.Stderr, "\r\x1b[K")
				return
			case <-tick.C:
			}
		}
	}()
	err := do()
	close(done)
	<-told
	return err
}
