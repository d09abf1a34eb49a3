// Package server is the bridge: it keeps the threads in which people follow discussions, starts the
// runs that hold them, and takes what a thread needs from one to the other.
//
//  1. Open opens the directory of a bridge: one SQLite database, which one server at a time has.
//  2. What people post reaches the run that is live in the thread, counts for the recess that is
//     open, or starts a run.
//  3. Runs post replies and their end, and read their inbox, with the protocol of package bridge.
//  4. Serve starts what is due, now and after a restart: queued runs, runs that were live when the
//     server was killed, recesses whose time has passed.
//
// Every change is one transaction that is on the disk before anybody is answered. Whatever is
// repeated, by a run or a person that got no answer, is recognised: replies by their correlation id
// and seq, posts by their key, the end of a run by its state.
package server
