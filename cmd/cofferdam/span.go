package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// timeSpan is a flag's time: 90s, 1h30m, 7d or 2w.
type timeSpan time.Duration

var _ pflag.Value = (*timeSpan)(nil)

// spanVar defines a flag that is a time.
func spanVar(set *pflag.FlagSet, at *time.Duration, name, usage string) {
	set.Var((*timeSpan)(at), name, usage)
}

// Set reads a time of the command line; a negative one is its command's to refuse.
func (s *timeSpan) Set(text string) error {
	d, err := parseSpan(text)
	if err != nil {
		return err
	}
	*s = timeSpan(d)
	return nil
}

// parseSpan reads a time, which may be 0 or negative, as Go writes it or as people count in days and weeks.
func parseSpan(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		if d, err = config.ParseSpan(text); err != nil {
			return 0, fmt.Errorf("%.40q is not a time such as 90s, 12h or 7d", text)
		}
	}
	return d, nil
}

// longestAge is what the configuration's times are bound to, too.
const longestAge = 100 * 365 * 24 * time.Hour

// parseAge parses, as parseSpan does, a time that is told in whole seconds, of which 0 would be none at all.
func parseAge(text string) (time.Duration, error) {
	d, err := parseSpan(text)
	if err == nil && (d < time.Second || d > longestAge) {
		return 0, fmt.Errorf("%.40q is not between a second and 100 years", text)
	}
	return d, err
}

// String is the flag's value; of none it is empty, so that help shows no default.
func (s *timeSpan) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

// Type is the word for it in help texts.
func (s *timeSpan) Type() string { return "duration" }
