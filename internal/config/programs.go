package config

import "github.com/cofferdam-dev/cofferdam/internal/hostpath/executable"

// Programs are the files of the host that decide what the programs do that tools and secrets are:
// no sandbox may write them.
func (c Config) Programs() []string {
	var all []string
	for _, t := range c.Tools {
		all = append(all, executable.Files(t.Command, t.Directory)...)
	}
	for _, s := range c.Secrets {
		all = append(all, executable.Files(s.Command, "")...)
		if s.OAuth != nil {
			all = append(all, executable.Files(s.OAuth.ClientSecret.Command, "")...)
		}
	}
	return all
}
