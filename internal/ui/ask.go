package ui

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// CanAsk reports whether somebody is there to be asked.
func CanAsk() bool {
	return IsTerminal(os.Stdin) && IsTerminal(os.Stderr)
}

// Agrees asks a person at the terminal; anything but yes is no.
func Agrees(question string) bool {
	_, _ = fmt.Fprintf(os.Stderr, "cofferdam: %s [y/N] ", question)
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n') // an end of input is no
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
