package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
)

// templateHints tells which template has a program that the sandbox has not. It is
// asked where a command ended with the code for "not found"; a shell says that of
// one in its script, too.
func (r *runner) templateHints(ctx context.Context) []string {
	for _, program := range programsOf(r.argv) {
		names := template.Having(program)
		if slices.Contains(names, r.box.Template) {
			continue // it is there, or would be in a newer one
		}
		if len(names) > 0 {
			return []string{r.templateHint(ctx, program, names[0])}
		}
		if r.box.Template == template.NameHost {
			continue // what is there, and in place of what, is this machine's matter
		}
		if absent := template.WhyAbsent(program); absent != "" {
			return []string{absent}
		}
		if onThisHost(ctx, "") == nil && hostHas(program) {
			return []string{fmt.Sprintf("%s is among this machine's own programs, which the template host shows: cofferdam run --template host ...", program)}
		}
	}
	return nil
}

func (r *runner) templateHint(ctx context.Context, program, name string) string {
	built, err := askAgain(ctx, r.client, func(c *client.Client) ([]api.Template, error) { return c.Templates(ctx) })
	if err == nil && !slices.ContainsFunc(built, func(t api.Template) bool { return t.Name == name }) {
		return fmt.Sprintf("%s is not in the template %s; the template %s has it: cofferdam template build %s (once, a minute or two), then: cofferdam run --template %s ...", program, r.box.Template, name, name, name)
	}
	return fmt.Sprintf("%s is not in the template %s; the template %s has it: cofferdam run --template %s ...", program, r.box.Template, name, name)
}

// programsOf are the words of a command that may be the program that was not found:
// its first, or where that is a shell, which each template has, those of its script.
func programsOf(argv []string) []string {
	programs := argv[:1]
	if slices.Contains([]string{"sh", "bash", "dash"}, filepath.Base(argv[0])) {
		programs = nil
		for _, script := range argv[1:] {
			programs = append(programs, strings.FieldsFunc(script, func(c rune) bool {
				return unicode.IsSpace(c) || strings.ContainsRune(";&|()<>`$\"'{}", c)
			})...)
		}
	}
	return programs
}

// hostHas tells whether a bare word is a program where the template host looks.
func hostHas(program string) bool {
	if strings.Contains(program, "/") || program == "" {
		return false
	}
	return slices.ContainsFunc([]string{"/usr/local/bin", "/usr/bin", "/usr/sbin"}, func(dir string) bool {
		info, err := os.Stat(filepath.Join(dir, program))
		return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
	})
}
