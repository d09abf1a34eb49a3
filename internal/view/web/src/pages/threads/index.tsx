// The threads of a bridge, the newest first, and a way to open one.
import type { JSX } from "preact";
import { useApi, url } from "../../api";
import { State, Write } from "../../discussion";
import { money, whole } from "../../format";
import { Bar } from "../../frame";
import { useEvents } from "../../live";
import { go, href } from "../../router";
import type { ThreadList } from "../../types";
import { Empty, Link, Name, Page, Problem, Reading, Scroll, When } from "../../ui";

export function ThreadsPage(): JSX.Element {
  const { data, failure, loading, reload } = useApi<ThreadList>(url("threads"));
  useEvents({ thread: "*" }, { thread: reload });
  const list = data?.threads ?? [];
  return (
    <>
      <Bar crumbs={[]} />
      <Page title="Threads">
        <h1>Threads</h1>
        {failure && <Problem message={failure.message}>{failure.hint}</Problem>}
        {data && (
          <Write to="threads" by={data.person} label="Open a thread" placeholder="What is to be discussed" sent={(posted) => go(href(["thread", posted.thread]))} />
        )}
        {loading && !data && <Reading />}
        {data && !list.length && <Empty title="There are no threads yet.">What you write opens one, and a discussion of the agents begins.</Empty>}
        {list.length > 0 && (
          <Scroll label="Threads">
            <table>
              <thead>
                <tr>
                  <th scope="col">thread</th>
                  <th scope="col">state</th>
                  <th scope="col" class="num">
                    posts
                  </th>
                  <th scope="col" class="num">
                    cost
                  </th>
                  <th scope="col">opened</th>
                </tr>
              </thead>
              <tbody>
                {list.map((t) => (
                  <tr key={t.id}>
                    <td>
                      <Link to={["thread", t.id]} class="strong">
                        <Name text={t.title} max={64} />
                      </Link>
                    </td>
                    <td>
                      <State thread={t} />
                    </td>
                    <td class="num">{whole(t.last)}</td>
                    <td class="num">{money(t.costUsd)}</td>
                    <td class="nowrap">
                      <When ms={t.createdAt} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
        )}
      </Page>
    </>
  );
}
