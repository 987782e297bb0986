package config

import "github.com/cofferdam-dev/cofferdam/internal/hostpath/executable"

// Programs are the files of the host that decide what the programs do that tools and secrets are, and
// the directories in which these look for more: no sandbox may write them.
func (c Config) Programs() []string {
	var all []string
	for _, t := range c.Tools {
		all = append(all, executable.Files(t.Command, t.Directory)...)
		all = append(all, executable.Places(t.Command, t.Directory, t.Environment)...)
	}
	for _, s := range c.Secrets {
		all = append(all, executable.Files(s.Command, "")...)
		all = append(all, executable.Places(s.Command, "", nil)...)
		if s.OAuth != nil {
			all = append(all, executable.Files(s.OAuth.ClientSecret.Command, "")...)
			all = append(all, executable.Places(s.OAuth.ClientSecret.Command, "", nil)...)
		}
	}
	return all
}
