// Rows of a long table, drawn only where they can be seen; the scroller is TanStack's.
import { useEffect, useReducer, useRef } from "preact/hooks";
import { elementScroll, observeElementOffset, observeElementRect, observeWindowOffset, observeWindowRect, Virtualizer, type VirtualizerOptions, windowScroll } from "@tanstack/virtual-core";
import type { RefObject } from "preact";

/** The rows of a table that scrolls with the page. Every row has the same height. */
export function useWindowRows(count: number, height: number, table: RefObject<HTMLTableElement | null>): Virtualizer<Window, Element> {
  const [, draw] = useReducer((n: number) => n + 1, 0);
  const made = useRef<Virtualizer<Window, Element> | null>(null);
  const options: VirtualizerOptions<Window, Element> = {
    count,
    estimateSize: () => height,
    overscan: 12,
    getScrollElement: () => window as Window,
    observeElementRect: observeWindowRect,
    observeElementOffset: observeWindowOffset,
    scrollToFn: windowScroll,
    initialOffset: () => window.scrollY,
    initialRect: { width: innerWidth, height: innerHeight },
    // Where the first row is in the page. The offset of an element counts from the nearest one that is positioned.
    scrollMargin: (table.current?.tBodies[0]?.getBoundingClientRect().top ?? 0) + scrollY,
    onChange: () => draw(0),
  };
  const rows = (made.current ??= new Virtualizer(options));
  rows.setOptions(options);
  useEffect(() => made.current?._didMount(), []);
  useEffect(() => made.current?._willUpdate());
  return rows;
}

interface ListOptions {
  count: number;
  estimate: (index: number) => number;
  key: (index: number) => number | string;
}

/** Items of different heights in an element that scrolls by itself. */
export function useList(scroller: RefObject<HTMLElement | null>, list: ListOptions): Virtualizer<HTMLElement, Element> {
  const [, draw] = useReducer((n: number) => n + 1, 0);
  const made = useRef<Virtualizer<HTMLElement, Element> | null>(null);
  const options: VirtualizerOptions<HTMLElement, Element> = {
    count: list.count,
    estimateSize: list.estimate,
    getItemKey: list.key,
    overscan: 8,
    getScrollElement: () => scroller.current,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    initialRect: { width: 800, height: innerHeight },
    onChange: () => draw(0),
  };
  const rows = (made.current ??= new Virtualizer(options));
  rows.setOptions(options);
  useEffect(() => made.current?._didMount(), []);
  useEffect(() => made.current?._willUpdate());
  return rows;
}
