// Package view is the local web app: it shows experiments, cells and traces in a browser, live
// during a run, and writes the same pages as one file.
//
//  1. New takes run directories, directories of them, and traces. Nothing outside them is served.
//  2. Server.Serve answers on a listener. The opened address carries a token that is exchanged for
//     a cookie; the Host and Origin of every request are checked.
//  3. The JSON endpoints below /api/ are documented in docs/view.md. Every number in them comes
//     from report, versus, query, session or ledger; this package computes none.
//  4. Server.Export freezes the answers of the endpoints into one HTML page that opens from disk.
//
// The front end is in view/web; its build is embedded. Each page is a folder of src/pages with one
// entry, which main.tsx names.
package view
