package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newTemplate() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "template",
		Short:   "Build, list, show and remove root filesystems",
		GroupID: groupWork,
		Long: `A template is a read-only root filesystem with a digest. "host" shows this
machine's own /usr and is there at once; "debian" is built once, and so is "dev",
which has a C compiler and more besides. None shows anything of a home directory.
A run that names none gets debian if it is built, and host otherwise.`,
		Example: "  cofferdam template build debian\n  cofferdam template list\n  cofferdam template show debian\n  cofferdam template rm debian",
	}
	cmd.AddCommand(newTemplateBuild(), newTemplateList(), newTemplateShow(), newTemplateRemove())
	return cmd
}

func newTemplateList() *cobra.Command {
	return lister(&cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the templates that can be used now",
		Example: "  cofferdam template list\n  cofferdam template list --json",
	}, (*client.Client).Templates, []string{"TEMPLATE", "SIZE", "CREATED", "DIGEST"}, func(t api.Template) []string {
		digest := t.Digest
		if t.Outdated {
			digest += "  outdated: cofferdam template build " + t.Name
		}
		return []string{t.Name, ui.Size(t.Bytes), ui.Moment(t.Created), digest}
	})
}

func newTemplateRemove() *cobra.Command {
	return onEach(&cobra.Command{
		Use:               "rm TEMPLATE...",
		Aliases:           []string{"remove"},
		Short:             "Remove templates that no sandbox uses",
		Example:           "  cofferdam template rm debian",
		ValidArgsFunction: completeTemplates,
	}, "removing", (*client.Client).RemoveTemplate)
}

func newTemplateBuild() *cobra.Command {
	var verbose, needed bool
	cmd := &cobra.Command{
		Use:   "build TEMPLATE",
		Short: "Build a template",
		Long: `Builds a template and returns when it can be used. On a terminal, one line shows what
is being done; elsewhere a line every 15 seconds, and with --verbose one per step. Ctrl-C
ends the build and leaves nothing behind. A template's tools come through the gateway,
pinned by digest and recorded. templates/.NAME.log in the state directory has the
steps with their times, and what the installer printed.`,
		Example: "  cofferdam template build debian\n  cofferdam template build --verbose debian 2>build.log",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return buildTemplate(ctx, args[0], verbose, needed)
		},
		ValidArgsFunction: completeTemplates,
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "a line per step")
	cmd.Flags().BoolVar(&needed, "if-needed", false, "do nothing if it is built and not outdated")
	return cmd
}

func buildTemplate(ctx context.Context, name string, verbose, needed bool) error {
	c, err := connectDaemon(ctx)
	if err != nil {
		return err
	}
	if needed {
		if t, err := c.Template(ctx, name); err == nil && !t.Outdated {
			return nil
		}
	}
	built, err := builtTemplate(ctx, c, name, verbose)
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%s  %s  %s\n", ui.Printable(built.Name), ui.Size(built.Bytes), ui.Printable(built.Digest))
	return err
}

// builtTemplate has the daemon build a template, and shows on stderr how far that is.
func builtTemplate(ctx context.Context, c *client.Client, name string, verbose bool) (api.Template, error) {
	show := ui.NewSteps(os.Stderr, verbose)
	defer show.Done()
	built, err := c.BuildTemplate(ctx, name, func(e api.TemplateEvent) { show.Show(e.Step, e.Detail, e.Percent) })
	if ctx.Err() != nil {
		return built, &exitError{code: exitSignalBase + int(syscall.SIGINT), err: errors.New("the build was ended; nothing of it is left")}
	}
	return built, err
}

// buildsMissing asks a person at the terminal whether to build the template for which a sandbox was
// refused, because it is not there yet, and does so. false: it is refused for something else, nobody
// is there, or the person says no. An end of ctx is its cause.
func buildsMissing(ctx context.Context, c *client.Client, name string, refused error) (built bool, err error) {
	if client.StatusOf(refused) != http.StatusConflict || name == "" || !ui.CanAsk() {
		return false, nil
	}
	if _, err := c.Template(ctx, name); client.StatusOf(err) != http.StatusConflict {
		return false, nil // it is there, or unknown: that was not the reason
	}
	if !ui.AgreesWithin(ctx, fmt.Sprintf("the template %s is not built yet; build it now (once, a minute or two)?", ui.Printable(name))) {
		return false, context.Cause(ctx)
	}
	_, err = builtTemplate(ctx, c, name, false)
	return err == nil, err
}
