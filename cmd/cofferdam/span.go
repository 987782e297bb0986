package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/cofferdam-dev/cofferdam/internal/config"
)

// span is a flag's time, as other flags and the configuration take it: 90s, 1h30m, 7d or 2w.
type span time.Duration

var _ pflag.Value = (*span)(nil)

// spanVar defines a flag that is a time.
func spanVar(set *pflag.FlagSet, at *time.Duration, name, usage string) {
	set.Var((*span)(at), name, usage)
}

// Set reads a time of the command line; a negative one is its command's to refuse.
func (s *span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		if d, err = config.ParseSpan(text); err != nil {
			return fmt.Errorf("%.40q is not a time such as 90s, 12h or 7d", text)
		}
	}
	*s = span(d)
	return nil
}

// String is the flag's value; of none it is empty, so that help shows no default.
func (s *span) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

// Type is the word for it in help texts.
func (s *span) Type() string { return "duration" }
