package main

import (
	"errors"

	"github.com/spf13/pflag"
)

// refuseRepeated has flags refuse a second value, which would replace the first without a word: of two
// policies nobody can know which was meant.
func refuseRepeated(set *pflag.FlagSet, names ...string) {
	for _, name := range names {
		flag := set.Lookup(name)
		flag.Value = &single{Value: flag.Value}
	}
}

// single is a value that is set once.
type single struct {
	pflag.Value
	given bool
}

// Set takes the value, unless there is one.
func (s *single) Set(text string) error {
	if s.given {
		return errors.New("it takes one value, and has one already")
	}
	s.given = true
	return s.Value.Set(text)
}
