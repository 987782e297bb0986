package main

import (
	"context"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/daemon"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newCache() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cache",
		Short:   "Show and prune what is kept of registries and builds",
		GroupID: groupHost,
		Long: `The cache has the packages' files and index pages that the gateway has verified, and
what template builds keep. All of it can be fetched again. The cache limits itself to
20 GiB of files and 4 GiB of pages. The first digest of each file is kept for ever,
and is not pruned.`,
		Example: "  cofferdam cache list\n  cofferdam cache prune --older-than 7d",
	}
	cmd.AddCommand(newCacheList(), newCachePrune())
	return cmd
}

// cachePart is one line of `cache list` and `cache prune`.
type cachePart struct {
	Part   string    `json:"part"`
	Files  int       `json:"files"`
	Bytes  int64     `json:"bytes"`
	Oldest time.Time `json:"oldest,omitzero"`
	Kept   bool      `json:"kept"` // never pruned
}

// partBuilds is what builds of templates keep.
const partBuilds = "for builds"

func newCacheList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "Show what the cache has, by kind",
		Example: "  cofferdam cache list\n  cofferdam cache list --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, store, err := ownCache(cmd.Context())
			if err != nil {
				return err
			}
			found, err := cache.Parts(dir)
			if err != nil {
				return err
			}
			parts := cacheParts(found)
			files, bytes, err := store.Kept()
			if err != nil {
				return err
			}
			parts = append(parts, cachePart{Part: partBuilds, Files: files, Bytes: bytes})
			return tellCache(parts, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func newCachePrune() *cobra.Command {
	var older string
	var all, quarantined, asJSON bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove what is old, or all that can be had again",
		Long: `Removes the files and index pages that were fetched longer ago than --older-than;
with --all, every one of them and what template builds keep. Runs can go on meanwhile:
what they need is fetched again. Files that turned out not to match their digest are
kept for you to look at; only --quarantined removes them.`,
		Example: "  cofferdam cache prune\n  cofferdam cache prune --older-than 7d\n  cofferdam cache prune --all --quarantined --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			before := time.Now()
			switch {
			case all && cmd.Flags().Changed("older-than"):
				return usageError(cmd, "--all is whatever its age; leave --older-than out")
			case !all:
				age, err := parseAge(older)
				if err != nil {
					return usageError(cmd, "--older-than %s", err)
				}
				before = before.Add(-age)
			}
			names := []string{cache.PartArtifacts, cache.PartPages}
			if quarantined {
				names = append(names, cache.PartQuarantined)
			}
			return pruneCache(cmd.Context(), names, before, all, asJSON)
		},
	}
	set := cmd.Flags()
	set.StringVar(&older, "older-than", "30d", "how old what goes must be, such as 12h or 7d")
	set.BoolVar(&all, "all", false, "whatever its age, and what builds of templates keep")
	set.BoolVar(&quarantined, "quarantined", false, "files that are not what their digest says, too")
	set.BoolVar(&asJSON, "json", false, "write JSON")
	registerCompletion(cmd, "older-than", completeWords("1d", "7d", "30d"))
	return cmd
}

func pruneCache(ctx context.Context, names []string, before time.Time, builds, asJSON bool) error {
	dir, store, err := ownCache(ctx)
	if err != nil {
		return err
	}
	swept, err := cache.Sweep(dir, names, before)
	if err != nil {
		return err
	}
	parts := cacheParts(swept)
	if builds {
		files, bytes, err := store.Kept()
		if err != nil {
			return err
		}
		if err := store.Forget(ctx); err != nil {
			return err
		}
		parts = append(parts, cachePart{Part: partBuilds, Files: files, Bytes: bytes})
	}
	return tellCache(parts, asJSON)
}

// ownCache is the cache of this user's own installation.
func ownCache(ctx context.Context) (string, *template.Store, error) {
	if err := onThisHost(ctx, "the cache"); err != nil {
		return "", nil, err
	}
	paths, err := config.DefaultPaths()
	if err != nil {
		return "", nil, err
	}
	return filepath.Join(paths.Cache(), daemon.ArtifactsDir), template.NewStore(paths.Templates(), template.Options{}), nil
}

func cacheParts(found []cache.Part) []cachePart {
	parts := []cachePart{}
	for _, p := range found {
		parts = append(parts, cachePart{p.Name, p.Files, p.Bytes, p.Oldest.UTC(), p.Kept})
	}
	return parts
}

func tellCache(parts []cachePart, asJSON bool) error {
	return writeAnswer(parts, asJSON, tableOf([]string{"PART", "FILES", "SIZE", "OLDEST", "PRUNED"}, func(p cachePart) []string {
		pruned := "by prune"
		switch {
		case p.Kept:
			pruned = "never"
		case p.Part == partBuilds:
			pruned = "by prune --all"
		case p.Part == cache.PartQuarantined:
			pruned = "by prune --quarantined"
		}
		return []string{p.Part, strconv.Itoa(p.Files), ui.Size(p.Bytes), ui.Moment(p.Oldest), pruned}
	}))
}
