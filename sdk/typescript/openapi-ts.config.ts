import { defineConfig } from '@hey-api/openapi-ts';

export default defineConfig({
  input: '../../openapi.yaml',
  output: { path: 'src/generated', importFileExtension: '.js' },
  // Types alone: the generated client drops a path of baseUrl or keeps it as the case may be, takes any page for an answer, and asks for a list where an
  // id is empty.
  plugins: ['@hey-api/typescript'],
});
