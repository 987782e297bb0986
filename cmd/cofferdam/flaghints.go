package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError says of a flag that is not there which one may have been meant.
func flagError(cmd *cobra.Command, err error) error {
	missing, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usage(cmd, "%s", err)
	}
	typed := missing.GetSpecifiedName()
	if why := flagElsewhere(cmd, typed); why != "" {
		return usage(cmd, "%s: %s", err, why)
	}
	if near := nearestFlag(cmd, typed); near != "" {
		return usage(cmd, "%s; did you mean --%s?", err, near)
	}
	return usage(cmd, "%s", err)
}

// flagElsewhere is what to do instead of a flag that other programs of this kind have.
func flagElsewhere(cmd *cobra.Command, typed string) string {
	switch cmd.Name() + " " + typed {
	case "run rm":
		return "the sandbox of a run is removed at its end without it; --keep lets the run go on where this program ends"
	case "run volume", "run v":
		return "--mount HOST:INSIDE[:rw] shows a directory"
	case "run network", "run net":
		return "a sandbox has no network; the policy's network_allowlist names the hosts that it reaches through the gateway"
	case "run it", "run interactive", "run tty", "run i", "run t":
		return "a run has a terminal if this program has one"
	case "allow yes":
		return "where nobody can be asked, --digest says which settings you have read"
	}
	return ""
}

// nearestFlag is the one flag of a command that is at most two letters from what was typed (one
// from a short word, of which two are half), or begins with it; "" if none is, or several are.
func nearestFlag(cmd *cobra.Command, typed string) string {
	if len(typed) < 3 {
		return ""
	}
	near, most := "", 2
	if len(typed) < 6 {
		most = 1
	}
	best := most + 1
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		distance := lettersApart(f.Name, typed)
		if strings.HasPrefix(f.Name, typed) {
			distance = min(distance, most)
		}
		switch {
		case distance < best:
			near, best = f.Name, distance
		case distance == best && best <= most:
			near = ""
		}
	})
	return near
}

// lettersApart is the Levenshtein distance of two words, whose letters are bytes.
func lettersApart(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
