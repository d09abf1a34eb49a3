// Package github reads workflow runs and their artifacts from GitHub's API.
//
//  1. ParseRepository understands the names that repositories go by.
//  2. A Client lists runs and artifacts page by page, and downloads artifacts. It waits out rate limits, retries what may pass, and gives up with an error
//     that says what to do.
//  3. Unzip unpacks an artifact, which is untrusted: nothing leaves the directory, nothing becomes a link, and size and number are bounded.
package github
