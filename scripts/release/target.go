package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// target builds and packs fit for one system.
func (r *release) target(system, processor string) error {
	name := fmt.Sprintf("fit_%s_%s_%s", r.version, system, processor)
	tree := filepath.Join(r.stage, name)
	program := filepath.Join(tree, "bin", "fit")
	if err := r.build(system, processor, program); err != nil {
		return err
	}
	for _, other := range names {
		if err := os.Symlink("fit", filepath.Join(tree, "bin", other)); err != nil {
			return err
		}
	}
	if err := os.CopyFS(filepath.Join(tree, "share"), os.DirFS(r.shared)); err != nil {
		return fmt.Errorf("copy manual pages and completions: %w", err)
	}
	for _, file := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		content, err := os.ReadFile(filepath.Join(r.root, file))
		if err != nil {
			return err
		}
		if err := write(filepath.Join(tree, "share", "doc", "fit", file), content); err != nil {
			return err
		}
	}
	if err := r.writeBill(program, name); err != nil {
		return err
	}
	if err := r.pack(tree, name); err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	if system != "linux" {
		return nil
	}
	for _, format := range []string{"deb", "rpm"} {
		if err := r.makePackage(tree, name, processor, format); err != nil {
			return fmt.Errorf("make %s: %w", format, err)
		}
	}
	return nil
}

// pack writes a tree as an archive without owners, in the order of its names, with one date.
func (r *release) pack(tree, name string) (err error) {
	file, err := os.Create(filepath.Join(r.out, name+".tar.gz"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	compressed := gzip.NewWriter(file)
	archive := tar.NewWriter(compressed)
	walk := func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return r.packOne(archive, filepath.Dir(tree), path, entry)
	}
	return errors.Join(filepath.WalkDir(tree, walk), archive.Close(), compressed.Close())
}

func (r *release) packOne(archive *tar.Writer, parent, path string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	inside, err := filepath.Rel(parent, path)
	if err != nil {
		return err
	}
	*header = tar.Header{
		Typeflag: header.Typeflag,
		Name:     filepath.ToSlash(inside),
		Linkname: link,
		Size:     header.Size,
		Mode:     int64(modeOf(info)),
		ModTime:  r.date,
	}
	if err := archive.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	content, err := os.Open(path)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(archive, content)
	return err
}

// modeOf is the mode of a file in what is published, whatever the umask of who builds it.
func modeOf(info fs.FileInfo) fs.FileMode {
	if info.IsDir() || info.Mode()&(fs.ModeSymlink|0o100) != 0 {
		return 0o755
	}
	return 0o644
}

// makePackage writes a deb or an rpm that puts a tree below /usr.
func (r *release) makePackage(tree, name, processor, format string) (err error) {
	info := &nfpm.Info{
		Name:        "fit",
		Arch:        processor,
		Platform:    "linux",
		Version:     r.version,
		Section:     "devel",
		Priority:    "optional",
		Maintainer:  "The fit authors <fit@users.noreply.github.com>",
		Description: "Prove whether a change to an agent made it better.\nBuilt from revision " + r.revision + ".",
		Homepage:    "https://github.com/fit-eval/fit",
		License:     "Apache-2.0",
		MTime:       r.date,
		Overridables: nfpm.Overridables{
			Depends:    []string{"git"},
			Recommends: []string{"bubblewrap"},
		},
	}
	info.RPM.BuildHost = "fit"
	err = filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := entry.Info()
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(tree, path)
		if err != nil {
			return err
		}
		content := &files.Content{
			Source:      path,
			Destination: "/usr/" + filepath.ToSlash(inside),
			FileInfo:    &files.ContentFileInfo{Mode: modeOf(file), MTime: r.date},
		}
		if file.Mode()&fs.ModeSymlink != 0 {
			content.Type = files.TypeSymlink
			if content.Source, err = os.Readlink(path); err != nil {
				return err
			}
		}
		info.Contents = append(info.Contents, content)
		return nil
	})
	if err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(r.out, name+"."+format))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return packager.Package(info, file)
}
