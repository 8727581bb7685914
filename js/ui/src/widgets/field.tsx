/** A field for a text that stands for something. */

import { useEffect, useState } from 'preact/hooks';

/**
 * Its text is read when it is left or Enter is pressed.
 *
 * @param onText takes the text; false if it stands for nothing
 * @param mistakeId the element that says what is wrong with the value, if something is
 */
export function Field(props: { label: string; value: string; width: string; placeholder?: string; mistakeId?: string | undefined; onText: (text: string) => boolean }) {
  const [text, setText] = useState(props.value);
  const [isWrong, setWrong] = useState(false);
  useEffect(() => {
    setText(props.value);
    setWrong(false);
  }, [props.value]);
  const commit = (): void => {
    if (text !== props.value) setWrong(!props.onText(text));
  };
  return (
    <input
      type="text"
      class={props.width}
      aria-label={props.label}
      aria-invalid={isWrong || props.mistakeId !== undefined}
      aria-describedby={props.mistakeId}
      title={props.label}
      placeholder={props.placeholder}
      value={text}
      onInput={(event) => setText(event.currentTarget.value)}
      onBlur={commit}
      onKeyDown={(event) => event.key === 'Enter' && commit()}
    />
  );
}
