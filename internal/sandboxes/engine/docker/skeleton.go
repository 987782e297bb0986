package docker

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/moby/moby/client"
)

// The labels of what is ours.
const (
	labelInstallation = "dev.cofferdam.installation"
	labelSandbox      = "dev.cofferdam.sandbox"
)

// repository is the name of our images; the tag says what is in one.
const repository = "cofferdam/skeleton"

// mostSkeletons bounds the images that are kept for later: one for each set of names that
// templates have in their top directory.
const mostSkeletons = 4

// ownFilters are what the service has of this installation.
func (e *Engine) ownFilters() client.Filters {
	return make(client.Filters).Add("label", labelInstallation+"="+e.installation)
}

// kernels are the directories of which the service makes what is in them.
func kernels(name string) bool { return name == "proc" || name == "sys" || name == "dev" }

// skeletonTar is an image with the entries: empty directories and files, and links. It is
// the same whenever it is made.
func skeletonTar(entries []rootEntry) ([]byte, error) {
	all := slices.Clone(entries)
	for _, name := range []string{"proc", "sys", "dev", "run", "tmp"} {
		if !slices.ContainsFunc(all, func(en rootEntry) bool { return en.name == name }) {
			all = append(all, rootEntry{name: name, dir: true})
		}
	}
	slices.SortFunc(all, func(a, b rootEntry) int { return cmp.Compare(a.name, b.name) })
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, en := range all {
		h := &tar.Header{Name: en.name, Mode: 0o755, Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0)}
		switch {
		case en.dir:
			h.Name, h.Typeflag = en.name+"/", tar.TypeDir
		case en.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, en.link
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return buf.Bytes(), err
}

// skeleton is the id of the image with the entries, which is imported if the service does
// not have it. No registry is asked, ever.
func (e *Engine) skeleton(ctx context.Context, s service, entries []rootEntry) (string, error) {
	data, err := skeletonTar(entries)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	tag := e.installation[:8] + "-" + hex.EncodeToString(sum[:8])
	e.importing.Lock()
	defer e.importing.Unlock()
	had, err := s.ImageList(ctx, client.ImageListOptions{Filters: e.ownFilters()})
	if err != nil {
		return "", fmt.Errorf("list the images of the Docker daemon: %w", err)
	}
	for _, image := range had.Items {
		if slices.Contains(image.RepoTags, repository+":"+tag) {
			return image.ID, nil
		}
	}
	slices.SortFunc(had.Items, func(a, b imageSummary) int { return cmp.Compare(b.Created, a.Created) })
	for i, image := range had.Items {
		if i >= mostSkeletons-1 {
			// One that a container is of stays; there will be another time.
			_, _ = s.ImageRemove(ctx, image.ID, client.ImageRemoveOptions{})
		}
	}
	return e.importSkeleton(ctx, s, data, tag)
}

func (e *Engine) importSkeleton(ctx context.Context, s service, data []byte, tag string) (string, error) {
	answer, err := s.ImageImport(ctx, client.ImageImportSource{Source: bytes.NewReader(data), SourceName: "-"}, repository, client.ImageImportOptions{
		Tag: tag, Changes: []string{"LABEL " + labelInstallation + "=" + e.installation},
	})
	if err != nil {
		return "", fmt.Errorf("import the skeleton of a root: %w", err)
	}
	defer answer.Close()
	if err := importError(answer); err != nil {
		return "", fmt.Errorf("import the skeleton of a root: %w", err)
	}
	image, err := s.ImageInspect(ctx, repository+":"+tag)
	if err != nil {
		return "", fmt.Errorf("the Docker daemon has not the image that was imported: %w", err)
	}
	return image.ID, nil
}

// importError reads what the service says of an import to its end: that it failed comes as one
// of several messages.
func importError(answer io.Reader) error {
	said := json.NewDecoder(io.LimitReader(answer, 1<<20))
	for {
		var message struct {
			Error string `json:"error"`
		}
		switch err := said.Decode(&message); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case message.Error != "":
			return errors.New(message.Error)
		}
	}
}

// leftBehind are the containers that the service has of this installation, by sandbox; none
// of a service that does not answer.
func (e *Engine) leftBehind(ctx context.Context) (map[string][]string, error) {
	if !e.marked() {
		return nil, nil //nolint:nilnil // a map without entries
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	s, err := e.dialService(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close() //nolint:errcheck // nothing is on its way
	found, err := s.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: e.ownFilters()})
	if err != nil {
		return nil, fmt.Errorf("list the containers of the Docker daemon: %w", err)
	}
	all := map[string][]string{}
	for _, c := range found.Items {
		if label, is := c.Labels[labelProbe]; is && probing(label) {
			continue
		}
		id := c.Labels[labelSandbox]
		all[id] = append(all[id], c.ID)
	}
	return all, nil
}

// removeOrphans removes containers of sandboxes that have no files any more. The next look finds again what it can't remove.
func (e *Engine) removeOrphans(ctx context.Context) error {
	left, err := e.leftBehind(ctx)
	if err != nil || len(left) == 0 {
		return err
	}
	known, err := e.home.List(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	s, err := e.dialService(ctx)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // nothing is on its way
	var errs []error
	for id, containers := range left {
		if slices.Contains(known, id) {
			continue
		}
		for _, c := range containers {
			errs = append(errs, removeContainer(ctx, s, c))
		}
	}
	return errors.Join(errs...)
}

// removeTimeout bounds how long a service may take to remove a container: one that hangs is
// taken for one that is down, so that there is time left for what is done without it.
const removeTimeout = 10 * time.Second

// removeContainers removes all that the service has of a sandbox. A service that is down
// has it until Tend finds it up again.
func (e *Engine) removeContainers(ctx context.Context, id string) error {
	if !e.marked() {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	s, err := dialHost(bounded, e.cfg.Host)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // nothing is on its way
	err = e.removeAll(bounded, s, id)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return s.absent(err)
	}
	return err
}

func (e *Engine) removeAll(ctx context.Context, s service, id string) error {
	found, err := s.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: e.ownFilters().Add("label", labelSandbox+"="+id)})
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range found.Items {
		errs = append(errs, removeContainer(ctx, s, c.ID))
	}
	return errors.Join(errs...)
}

// removeContainer kills and removes one; one that another removes is waited for.
func removeContainer(ctx context.Context, s service, container string) error {
	for {
		_, err := s.ContainerRemove(ctx, container, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if err == nil || isGone(err) {
			return nil
		}
		if !conflicts(err) {
			return fmt.Errorf("remove container %.12s: %w", container, err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}
