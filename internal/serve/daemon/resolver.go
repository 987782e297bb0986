package daemon

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// resolverFiles are what the gateway needs of /etc in its own root directory.
func resolverFiles() []string { return []string{"resolv.conf", "hosts", "nsswitch.conf"} }

// resolverFolders are those in which the resolver's files lie, which others replace while a
// dialer runs: etc, and where links of it lead.
func resolverFolders(etc string) []string {
	folders := []string{etc}
	for _, name := range resolverFiles() {
		file, err := filepath.EvalSymlinks(filepath.Join(etc, name))
		if err != nil {
			continue // it may not be there
		}
		if dir := filepath.Dir(file); !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	}
	return folders
}

// refreshEvery is how soon a changed resolver of the host (another network)
// reaches the gateway.
const refreshEvery = 5 * time.Second

// refreshResolver copies the host's resolver configuration for the gateway,
// which sees nothing of the host's files.
func (g *gatewayProcess) refreshResolver() error {
	for _, name := range resolverFiles() {
		data, err := os.ReadFile(filepath.Join("/etc", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := replaceFile(filepath.Join(g.d.opts.Paths.Cache(), "etc", name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// keepResolverFresh refreshes until ctx ends.
func (g *gatewayProcess) keepResolverFresh(ctx context.Context) {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := g.refreshResolver(); err != nil {
				g.d.opts.Log.Warn("the gateway's resolver can't be refreshed", "err", err)
			}
		}
	}
}
